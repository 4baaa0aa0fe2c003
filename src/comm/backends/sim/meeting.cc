// How the ranks of a world meet: by its name, in this process.
#include <map>
#include <numeric>

#include "base/text.h"
#include "comm/backends/sim/world.h"

namespace diapason::comm::sim {
namespace {

// The ranks that have arrived so far.
struct Meeting {
  int size = 0;
  int first = 0;
  uint64_t seed = 0;
  std::shared_ptr<const Cluster> cluster;
  std::vector<bool> here;
  int count = 0;
  bool over = false;
  Status status;
  std::shared_ptr<World> world;
  std::condition_variable changed;
};

struct Meetings {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Meeting>> open;
};

Meetings& All() {
  // Never destroyed: threads may still be here while the process ends.
  static Meetings* const kMeetings = new Meetings;
  return *kMeetings;
}

// How this rank's arguments differ from the first one's; empty if they are the same.
std::string Differs(const Meeting& meeting, int rank, int size, const Cluster& cluster,
                    uint64_t seed) {
  const auto text = [&](const std::string& mine, const std::string& theirs) {
    return Format("rank {} says {} where rank {} says {}", rank, mine, meeting.first, theirs);
  };
  if (size != meeting.size) {
    return text(Format("{} ranks", size), Format("{}", meeting.size));
  }
  if (cluster.digest != meeting.cluster->digest) {
    return text("cluster '" + cluster.name + "'",
                "'" + meeting.cluster->name + "'" +
                    (cluster.name == meeting.cluster->name ? " (the file has changed)" : ""));
  }
  if (seed != meeting.seed) {
    return text(Format("seed {}", seed), Format("{}", meeting.seed));
  }
  if (meeting.here[static_cast<size_t>(rank)]) return Format("rank {} comes twice", rank);
  return "";
}

std::string Absent(const Meeting& meeting) {
  std::vector<int> missing;
  for (int rank = 0; rank < meeting.size; ++rank) {
    if (!meeting.here[static_cast<size_t>(rank)]) missing.push_back(rank);
  }
  std::string text = RankList(missing) + (missing.size() == 1 ? " has" : " have") + " not come";
  if (meeting.count == 1) {
    text +=
        ": the simulated cluster runs all ranks as threads of one process, and no other thread of "
        "this one has created a group of that name";
  }
  return text;
}

}  // namespace

Result<std::shared_ptr<World>> Meet(const std::string& key, const std::string& name, int rank,
                                    int size, const std::shared_ptr<const Cluster>& cluster,
                                    uint64_t seed, Deadline deadline) {
  Meetings& all = All();
  std::unique_lock<std::mutex> lock(all.mutex);
  std::shared_ptr<Meeting>& place = all.open[key];
  if (place == nullptr) {
    place = std::make_shared<Meeting>();
    place->size = size;
    place->first = rank;
    place->seed = seed;
    place->cluster = cluster;
    place->here.resize(static_cast<size_t>(size));
  }
  const std::shared_ptr<Meeting> meeting = place;
  const auto end = [&](const Status& status) {
    meeting->over = true;
    meeting->status = status;
    all.open.erase(key);
    meeting->changed.notify_all();
  };

  const std::string differs = Differs(*meeting, rank, size, *cluster, seed);
  if (!differs.empty()) {
    end(Invalid(differs));
    return meeting->status;
  }
  meeting->here[static_cast<size_t>(rank)] = true;
  ++meeting->count;
  if (meeting->count == size) {
    std::vector<int> members(static_cast<size_t>(size));
    std::iota(members.begin(), members.end(), 0);
    meeting->world = std::make_shared<World>(cluster, std::move(members), name, seed);
    end({});
  }
  if (!meeting->changed.wait_until(lock, deadline, [&] { return meeting->over; })) {
    end(TimedOut(Absent(*meeting)));
  }
  if (!meeting->status.ok()) return meeting->status;
  return meeting->world;
}

}  // namespace diapason::comm::sim
