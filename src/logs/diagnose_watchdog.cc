// Time-outs of PyTorch's watchdog: who waits, and for whom.
#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "logs/diagnose.h"

namespace diapason::logs {
namespace {

constexpr int64_t kMostGaps = 4096;

// "rank 3", "ranks 0-2"
std::string NamedRanks(const std::vector<int64_t>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + RanksText(ranks);
}

std::string TimedOutCall(const WatchdogRank& rank) {
  std::string text = rank.operation.empty() ? "a collective" : rank.operation;
  if (rank.elements >= 0) text += Format(" of {} elements", rank.elements);
  return text;
}

bool DefaultGroup(const std::string& group) {
  return group.empty() || group == "0" || group.find("default") != std::string::npos;
}

// The number of ranks of the job; 0 if no line says it.
int64_t WorldSize(const LogFacts& facts) {
  int64_t size = 0;
  for (const LoggedComm& communicator : facts.communicators) {
    size = std::max(size, communicator.ranks);
  }
  return size;
}

// The ranks of one group by what they do.
struct Waiting {
  const WatchdogRank* first = nullptr;  // the earliest collective that timed out
  const WatchdogRank* other = nullptr;  // timed out in another one with the same number
  const WatchdogRank* late = nullptr;   // the fewest collectives enqueued
  bool late_is_behind = false;          // and it had not come to that collective
  std::vector<int64_t> waiting;
  std::vector<int64_t> elsewhere;  // timed out in a later one
  std::vector<int64_t> silent;     // did not time out
  int64_t world = 0;
};

// Ranks without a time-out, if the logs show enough of the job to say so.
void FindSilent(const LogFacts& facts, const std::vector<const WatchdogRank*>& ranks,
                Waiting* found) {
  std::set<int64_t> timed_out;
  std::set<int64_t> silent;
  int64_t highest = -1;
  for (const WatchdogRank* rank : ranks) {
    highest = std::max(highest, rank->rank);
    if (rank->sequence >= 0) {
      timed_out.insert(rank->rank);
    } else {
      silent.insert(rank->rank);
    }
  }
  if (DefaultGroup(found->first->group)) {
    for (const LoggedProcess& process : facts.processes) {
      if (process.rank >= 0 && timed_out.count(process.rank) == 0) silent.insert(process.rank);
    }
    highest = std::max(highest, facts.highest_rank);
    found->world = WorldSize(facts);
    const int64_t seen = std::max(highest + 1, found->world);
    // The log of one rank says nothing about the others.
    if (seen <= kMostGaps && static_cast<int64_t>(timed_out.size()) * 2 >= seen &&
        timed_out.size() > 1) {
      for (int64_t rank = 0; rank < seen; ++rank) {
        if (timed_out.count(rank) == 0) silent.insert(rank);
      }
    }
  }
  found->silent.assign(silent.begin(), silent.end());
}

Waiting FindWaiting(const LogFacts& facts, const std::vector<const WatchdogRank*>& ranks) {
  Waiting found;
  for (const WatchdogRank* rank : ranks) {
    if (rank->sequence < 0) continue;
    if (found.first == nullptr || rank->sequence < found.first->sequence) found.first = rank;
  }
  if (found.first == nullptr) return found;
  // Of ranks that called something else, the smaller group is named.
  std::map<std::pair<std::string, int64_t>, std::vector<const WatchdogRank*>> calls;
  bool differ = false;
  for (const WatchdogRank* rank : ranks) {
    if (rank->sequence == found.first->sequence) {
      found.waiting.push_back(rank->rank);
      calls[{rank->operation, rank->elements}].push_back(rank);
    } else if (rank->sequence >= 0) {
      found.elsewhere.push_back(rank->rank);
    }
    if (rank->last_enqueued < -1) continue;
    if (found.late != nullptr && rank->last_enqueued != found.late->last_enqueued) differ = true;
    if (found.late == nullptr || rank->last_enqueued < found.late->last_enqueued) {
      found.late = rank;
    }
  }
  if (calls.size() > 1) {
    const auto fewest = std::min_element(
        calls.begin(), calls.end(),
        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    found.other = fewest->second.front();
    for (const auto& [call, members] : calls) {
      if (members.front() != found.other) found.first = members.front();
    }
  }
  if (!differ) {
    found.late = nullptr;
  } else {
    found.late_is_behind = found.late->last_enqueued < found.first->sequence;
  }
  FindSilent(facts, ranks, &found);
  return found;
}

void Explain(const LogFacts& facts, const Waiting& found, Finding* finding) {
  const WatchdogRank* other = found.other;
  if (other != nullptr) {
    finding->id = "op.mismatch";
    finding->title +=
        Format("; the ranks called different collectives (mismatch): rank {} is in {}", other->rank,
               TimedOutCall(*other));
    finding->evidence.push_back(facts.Where(other->place));
    finding->action =
        "all ranks must call the same collectives with the same sizes in the same order; the two "
        "lines show where they part";
  } else if (found.late_is_behind) {
    finding->title += Format("; rank {} is behind: it never came to it (last enqueued: {})",
                             found.late->rank, found.late->last_enqueued);
    finding->action =
        Format("look at rank {} first: what it did instead of calling this collective is the cause",
               found.late->rank);
  } else if (!found.silent.empty()) {
    finding->title += "; " + NamedRanks(found.silent) + " did not time out";
    finding->action = Format(
        "look at {} first: it never came to this collective (another call, a long checkpoint, "
        "evaluation or data loading), or its process had ended{}",
        NamedRanks(found.silent),
        found.world == 0 ? "; so may ranks above the highest in these logs" : "");
  } else if (!found.elsewhere.empty()) {
    finding->title += Format("; {} waited in a later one", NamedRanks(found.elsewhere));
    finding->action = Format(
        "{} skipped it or are further on: compare their program's path (a branch that depends on "
        "data or rank)",
        NamedRanks(found.elsewhere));
  } else if (found.late != nullptr) {
    finding->title += Format("; rank {} had called the fewest collectives", found.late->rank);
    finding->action = Format("look at rank {} first: it had called the fewest collectives ({})",
                             found.late->rank, found.late->last_enqueued);
  } else if (found.world > 0 && static_cast<int64_t>(found.waiting.size()) >= found.world) {
    finding->title += "; every rank called it and none got through";
    finding->action =
        "look at the network and the links between the GPUs (NCCL_DEBUG=INFO), and write flight "
        "recorder dumps next time (TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1)";
  } else {
    finding->action =
        "give the logs of all ranks: a rank that is not here did not come, or the network failed; "
        "write flight recorder dumps next time (TORCH_NCCL_TRACE_BUFFER_SIZE=2000 "
        "TORCH_NCCL_DUMP_ON_TIMEOUT=1)";
  }
}

}  // namespace

void DiagnoseWatchdog(const LogFacts& facts, std::vector<Finding>* findings) {
  std::map<std::string, std::vector<const WatchdogRank*>> groups;
  for (const WatchdogRank& rank : facts.watchdog.ranks) {
    groups[DefaultGroup(rank.group) ? "" : rank.group].push_back(&rank);
  }
  size_t said = 0;
  for (const auto& [group, ranks] : groups) {
    if (said++ == 8) break;
    const Waiting found = FindWaiting(facts, ranks);
    if (found.first == nullptr) continue;
    Finding finding;
    finding.id = "hang.timeout";
    finding.severity = Severity::kError;
    finding.title = found.first->sequence == 0 ? "A collective"
                                               : Format("Collective {}", found.first->sequence);
    finding.title +=
        Format(" ({}) timed out on {}", TimedOutCall(*found.first), NamedRanks(found.waiting));
    if (found.first->milliseconds > 0) {
      finding.title +=
          Format(" after {:.0f} s", static_cast<double>(found.first->milliseconds) / 1000);
    }
    if (!found.first->group.empty()) finding.title += " in group " + found.first->group;
    finding.evidence.push_back(facts.Where(found.first->place));
    Explain(facts, found, &finding);
    if (found.late != nullptr) finding.evidence.push_back(facts.Where(found.late->status));
    findings->push_back(std::move(finding));
  }
}

}  // namespace diapason::logs
