#include "job_profile/timeline.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "journal/joined.h"

namespace diapason::job_profile {
namespace {

using journal::JournalComm;
using journal::JournalContents;
using journal::JournalRecord;
using journal::RecordKind;

// A longer run is a damaged line.
constexpr double kLongestSeconds = 3600;

struct Place {
  size_t timeline = 0;
  size_t role = 0;
  uint64_t group = 0;
};

Call CallOf(const JournalRecord& record, const Place& place) {
  Call call;
  call.role = place.role;
  call.group = place.group;
  call.sequence = record.sequence;
  call.collective = record.collective;
  call.bytes = record.bytes;
  call.host_ns = record.time_ns;
  call.captured = record.captured;
  if (record.kind == RecordKind::kRan && record.seconds > 0 && record.seconds < kLongestSeconds &&
      record.gpu_start_ns < UINT64_MAX / 2) {
    call.start_ns = record.gpu_start_ns;
    call.stop_ns = record.gpu_start_ns + static_cast<uint64_t>(std::llround(record.seconds * 1e9));
  }
  return call;
}

CallTurn TurnOf(const JournalRecord& decision) {
  if (!decision.learning || decision.captured) return CallTurn::kNone;
  if (decision.reason == Reason::kDefaultTurn) return CallTurn::kDefault;
  return decision.reason == Reason::kRow && decision.applied ? CallTurn::kPolicy : CallTurn::kNone;
}

void TakeDecision(const JournalRecord& decision, Call* call) {
  call->grouped = decision.group_calls > 1;
  call->turn = TurnOf(decision);
  call->decided = true;
  call->asked = journal::AskedOf(decision);
}

// The calls of one journal: what ran, what was asked about where runs are not seen, and what
// bypassed the tuner.
void AddCalls(const JournalContents& contents, const std::map<uint32_t, Place>& places,
              std::vector<Timeline>* timelines) {
  const std::vector<uint32_t> partners = journal::JoinRuns(contents);
  const std::vector<bool> sees_runs = journal::SeesRuns(contents);
  std::map<uint32_t, uint64_t> last_asked;  // by communicator
  for (size_t i = 0; i < contents.records.size(); ++i) {
    const JournalRecord& record = contents.records[i];
    const auto found = places.find(record.communicator);
    if (found == places.end()) continue;
    Call call = CallOf(record, found->second);
    if (record.kind == RecordKind::kDecision) {
      uint64_t& captured = (*timelines)[found->second.timeline].last_capture;
      if (record.captured) captured = std::max(captured, record.time_ns);
      // Where runs are seen, a question without one is a simulated or captured call.
      if (sees_runs[contents.by_number.at(record.communicator)]) continue;
      TakeDecision(record, &call);
    } else if (record.kind == RecordKind::kRan) {
      call.ran = journal::ConfigOf(record);
      if (partners[i] != journal::kNoPartner) {
        const JournalRecord& decision = contents.records[partners[i]];
        call.host_ns = decision.time_ns;
        TakeDecision(decision, &call);
        last_asked[record.communicator] = call.host_ns;
      } else if (!record.captured && last_asked.contains(record.communicator)) {
        // One of several questions of a group: which one is not known.
        call.host_ns = last_asked[record.communicator];
        call.grouped = true;
      }
    } else if (record.kind == RecordKind::kBypassed) {
      call.bypassed = true;
    } else {
      continue;
    }
    (*timelines)[found->second.timeline].calls.push_back(call);
  }
}

// Ranks of groups that no communicator joins may have the same number.
void TellApart(std::vector<Timeline>* timelines) {
  std::map<std::string, int> counts;
  for (const Timeline& timeline : *timelines) ++counts[timeline.label];
  for (Timeline& timeline : *timelines) {
    if (counts[timeline.label] > 1) timeline.label += " (" + timeline.process + ")";
  }
}

// The shortest time of each call over the ranks.
void FindQuickest(std::vector<Timeline>* timelines) {
  struct Least {
    double seconds = 0;
    int ranks = 0;
  };
  std::map<std::tuple<uint64_t, uint64_t, uint8_t, uint64_t>, Least> least;
  const auto key = [](const Call& call) {
    return std::tuple(call.group, call.sequence, call.collective, call.bytes);
  };
  for (const Timeline& timeline : *timelines) {
    for (const Call& call : timeline.calls) {
      if (!call.timed()) continue;
      Least& one = least[key(call)];
      if (one.ranks++ == 0 || call.seconds() < one.seconds) one.seconds = call.seconds();
    }
  }
  for (Timeline& timeline : *timelines) {
    for (Call& call : timeline.calls) {
      if (!call.timed()) continue;
      const Least& one = least[key(call)];
      if (one.ranks > 1) call.quickest = one.seconds;
    }
  }
}

}  // namespace

size_t JobMaker::RoleOf(size_t timeline, const JournalComm& comm) {
  std::vector<uint64_t>& ends =
      places_[{timeline, comm.library, comm.shape.nodes, comm.shape.ranks, comm.name}];
  // The first place whose communicator had ended.
  size_t place = 0;
  while (place < ends.size() &&
         (ends[place] == 0 || comm.created_ns == 0 || ends[place] > comm.created_ns)) {
    ++place;
  }
  if (place == ends.size()) ends.push_back(0);
  ends[place] = comm.ended_ns;
  const auto [at, fresh] =
      roles_.emplace(std::tuple(comm.library, comm.library_version, comm.shape.nodes,
                                comm.shape.ranks, comm.name, static_cast<int>(place)),
                     job_.roles.size());
  if (fresh) {
    Role role;
    role.library = comm.library;
    role.library_version = comm.library_version;
    role.shape = comm.shape;
    role.name = comm.name;
    role.place = static_cast<int>(place);
    job_.roles.push_back(std::move(role));
    groups_.emplace_back();
    ended_.emplace_back();
  }
  return at->second;
}

// A journal makes one timeline, or one for each rank of a process with several.
void JobMaker::Add(const std::string& name, const JournalContents& contents) {
  const std::vector<journal::Matcher::Place> matched = matcher_.Add(name, contents);
  std::set<size_t> seen;
  bool several = false;
  for (const journal::Matcher::Place& place : matched) {
    several = !seen.insert(place.group).second || several;
  }
  job_.several_devices = job_.several_devices || several;
  std::map<int, size_t> by_rank;
  std::map<size_t, int64_t> widest;
  std::map<uint32_t, Place> places;
  for (size_t i = 0; i < contents.communicators.size(); ++i) {
    const JournalComm& comm = contents.communicators[i];
    const auto [at, fresh] = by_rank.emplace(several ? comm.rank : 0, job_.ranks.size());
    if (fresh) {
      Timeline timeline;
      timeline.label = name;
      timeline.process = Format("{}, process {}", contents.host, contents.pid);
      timeline.steps = contents.steps;
      std::sort(timeline.steps.begin(), timeline.steps.end());
      timeline.complete = contents.ended && contents.dropped == 0 && contents.bad_lines == 0;
      job_.ranks.push_back(std::move(timeline));
    }
    Timeline& timeline = job_.ranks[at->second];
    if (comm.rank >= 0 && comm.shape.ranks > widest[at->second]) {
      widest[at->second] = comm.shape.ranks;
      timeline.rank = comm.rank;
      timeline.label = journal::RanksText({comm.rank});
    }
    const size_t role = RoleOf(at->second, comm);
    groups_[role].insert(matched[i].group);
    if (comm.ended_ns != 0) ended_[role].insert(matched[i].group);
    places[comm.number] = {at->second, role, matched[i].group};
  }
  AddCalls(contents, places, &job_.ranks);
}

void JobMaker::CountMissing() {
  int64_t largest = 0;
  std::set<int> present;
  for (const journal::Matcher::Group& group : matcher_.groups()) {
    if (group.shape.ranks <= largest) continue;
    largest = group.shape.ranks;
    present.clear();
    for (const journal::Matcher::Member& member : group.members) present.insert(member.rank);
  }
  if (!present.contains(-1) && largest > static_cast<int64_t>(present.size())) {
    job_.missing_ranks = static_cast<size_t>(largest) - present.size();
  }
}

Job JobMaker::Finish() {
  for (size_t i = 0; i < job_.roles.size(); ++i) {
    job_.roles[i].communicators = groups_[i].size();
    job_.roles[i].ended = ended_[i].size();
  }
  std::erase_if(job_.ranks, [](const Timeline& timeline) { return timeline.calls.empty(); });
  for (Timeline& timeline : job_.ranks) {
    std::stable_sort(timeline.calls.begin(), timeline.calls.end(),
                     [](const Call& a, const Call& b) { return a.host_ns < b.host_ns; });
    for (const Call& call : timeline.calls) ++job_.roles[call.role].calls;
  }
  std::stable_sort(job_.ranks.begin(), job_.ranks.end(), [](const Timeline& a, const Timeline& b) {
    return std::pair(a.rank < 0, a.rank) < std::pair(b.rank < 0, b.rank);
  });
  TellApart(&job_.ranks);
  FindQuickest(&job_.ranks);
  CountMissing();
  return std::move(job_);
}

}  // namespace diapason::job_profile
