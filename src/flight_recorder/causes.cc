#include "flight_recorder/causes.h"

#include <algorithm>
#include <set>

namespace diapason::flight_recorder {
namespace {

constexpr size_t kMostDeadlocks = 4;

class Finder {
 public:
  Finder(const JobProgress& job, const WaitGraph& graph)
      : job_(job), graph_(graph), explained_(job.ranks().size(), 0) {}

  Causes Find() {
    Mismatches();
    Behind();
    Stuck();
    Unknown();
    if (!Known()) {
      Crossings();
      Stalled(true);
      Circles();
      Stalled(false);
    }
    return std::move(causes_);
  }

 private:
  void Explain(const std::vector<uint32_t>& ranks) {
    const std::vector<char> reached = graph_.Reach(ranks);
    for (size_t i = 0; i < reached.size(); ++i) {
      if (reached[i] != 0) explained_[i] = 1;
    }
  }
  bool AnyExplained(const std::vector<uint32_t>& ranks) const {
    return std::any_of(ranks.begin(), ranks.end(),
                       [&](uint32_t rank) { return explained_[rank] != 0; });
  }

  void Mismatches() {
    causes_.mismatches = FindMismatches(job_);
    const std::vector<Mismatch>& pairs = graph_.pair_mismatches();
    causes_.mismatches.insert(causes_.mismatches.begin(), pairs.begin(), pairs.end());
    std::vector<uint32_t> blocked;
    for (const Mismatch& mismatch : causes_.mismatches) {
      if (!mismatch.open) continue;
      for (const Mismatch::Variant& variant : mismatch.variants) {
        blocked.insert(blocked.end(), variant.ranks.begin(), variant.ranks.end());
      }
    }
    Explain(blocked);
    blocked_ = explained_;
  }

  void Behind() {
    for (uint32_t rank = 0; rank < job_.ranks().size(); ++rank) {
      if (graph_.WaitsIn(rank).empty() && !graph_.WaitFor(rank).empty() &&
          job_.rank(rank).Certain() && blocked_[rank] == 0) {
        causes_.behind.push_back(rank);
      }
      if (job_.rank(rank).older) causes_.older.push_back(rank);
      if (job_.rank(rank).dump->truncated) causes_.cut.push_back(rank);
    }
    causes_.behind_reach = graph_.Reach(causes_.behind);
    Explain(causes_.behind);
  }

  // Ranks whose dumps are missing, break off or are older than others.
  void Unknown() {
    causes_.without_dump = job_.Missing();
    std::set<int64_t> missing;
    std::vector<uint32_t> waiting;
    for (uint32_t id = 0; id < graph_.nodes().size(); ++id) {
      const Node& node = graph_.nodes()[id];
      if (node.no_dump.empty() && node.unknown.empty()) continue;
      waiting.insert(waiting.end(), node.waiting.begin(), node.waiting.end());
      if (node.no_dump.empty() || !node.absent.empty() || AnyExplained(node.waiting)) continue;
      missing.insert(node.no_dump.begin(), node.no_dump.end());
      causes_.missing_nodes.push_back(id);
    }
    causes_.missing.assign(missing.begin(), missing.end());
    Explain(waiting);
  }

  // What is found is enough: what remains may follow from it in ways that dumps do not show.
  bool Known() const {
    return !causes_.behind.empty() || !causes_.stuck.empty() ||
           std::any_of(causes_.mismatches.begin(), causes_.mismatches.end(),
                       [](const Mismatch& mismatch) { return mismatch.open; });
  }

  void Crossings() {
    for (const WaitGraph::Crossing& crossing : graph_.crossings()) {
      const std::vector<uint32_t> ranks = {crossing.ranks[0], crossing.ranks[1]};
      if (AnyExplained(ranks)) continue;
      causes_.deadlocks.push_back({{{ranks[0], crossing.nodes[0]}, {ranks[1], crossing.nodes[1]}}});
      Explain(ranks);
    }
  }

  // Operations that all members have entered: those that nothing else is open before (`first`), or
  // the others.
  void Stalled(bool first) {
    std::vector<uint32_t> ranks;
    const size_t known = causes_.stalled.size();
    for (uint32_t id = 0; id < graph_.nodes().size(); ++id) {
      const Node& node = graph_.nodes()[id];
      if (!node.absent.empty() || !node.queued.empty() || !node.no_dump.empty() ||
          !node.unknown.empty() || node.later.empty() != first || AnyExplained(node.waiting)) {
        continue;
      }
      causes_.stalled.push_back(id);
      ranks.insert(ranks.end(), node.waiting.begin(), node.waiting.end());
    }
    Explain(ranks);
    // The oldest first.
    const auto begin = causes_.stalled.begin() + static_cast<ptrdiff_t>(known);
    std::stable_sort(begin, causes_.stalled.end(), [&](uint32_t a, uint32_t b) {
      const Node& left = graph_.nodes()[a];
      const Node& right = graph_.nodes()[b];
      return left.op->entry->created_ns < right.op->entry->created_ns;
    });
  }

  // The next rank on the way around a circle, and the node in which `rank` waits for it.
  std::pair<uint32_t, uint32_t> Next(uint32_t rank) const {
    for (const WaitGraph::Place& place : graph_.WaitsIn(rank)) {
      const Node& node = graph_.nodes()[place.node];
      // All members have entered it, and it comes first on each: what follows waits for it.
      if (node.from < 0 && node.absent.empty() && node.queued.empty()) break;
      for (const std::vector<uint32_t>* list : {&node.absent, &node.queued}) {
        for (const uint32_t other : *list) {
          if (other != rank && explained_[other] == 0) return {other, place.node};
        }
      }
    }
    return {kNoIndex, kNoIndex};
  }

  void Circles() {
    for (uint32_t start = 0; start < job_.ranks().size(); ++start) {
      if (explained_[start] != 0 || graph_.WaitsIn(start).empty()) continue;
      std::vector<std::pair<uint32_t, uint32_t>> path;
      std::vector<size_t> place(job_.ranks().size(), SIZE_MAX);
      uint32_t rank = start;
      while (rank != kNoIndex && place[rank] == SIZE_MAX) {
        place[rank] = path.size();
        const auto [next, node] = Next(rank);
        path.emplace_back(rank, node);
        rank = next;
      }
      if (rank == kNoIndex) continue;
      std::vector<uint32_t> ranks;
      for (const auto& step : path) ranks.push_back(step.first);
      if (causes_.deadlocks.size() < kMostDeadlocks) {
        path.erase(path.begin(), path.begin() + static_cast<ptrdiff_t>(place[rank]));
        causes_.deadlocks.push_back({std::move(path)});
      }
      Explain(ranks);
    }
  }

  void Stuck() {
    for (uint32_t rank = 0; rank < job_.ranks().size(); ++rank) {
      const RankProgress& progress = job_.rank(rank);
      // A mismatch lets some ranks complete what others cannot.
      if (progress.stale.empty() || !progress.Certain() || blocked_[rank] != 0) continue;
      causes_.stuck.push_back(rank);
    }
  }

  const JobProgress& job_;
  const WaitGraph& graph_;
  Causes causes_;
  std::vector<char> explained_;
  std::vector<char> blocked_;  // by a mismatch, directly or through others
};

}  // namespace

Causes FindCauses(const JobProgress& job, const WaitGraph& graph) {
  return Finder(job, graph).Find();
}

}  // namespace diapason::flight_recorder
