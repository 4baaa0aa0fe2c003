// Ranks that wait for others: from PyTorch's watchdog and its flight recorder.
#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "flight_recorder/diagnose.h"
#include "logs/diagnose.h"

namespace diapason::logs {
namespace {

// "rank 3", "ranks 0-2"
std::string RankWords(const std::vector<int64_t>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + RanksText(ranks);
}

std::string Call(const WatchdogRank& rank) {
  std::string text = rank.operation.empty() ? "a collective" : rank.operation;
  if (rank.elements >= 0) {
    text += Format(" of {} elements", rank.elements);
  }
  return text;
}

void WatchdogGroup(const LogFacts& facts, const std::vector<const WatchdogRank*>& ranks,
                   std::vector<Finding>* findings) {
  const WatchdogRank* first = nullptr;  // the earliest collective that timed out
  std::set<int64_t> known;
  for (const WatchdogRank* rank : ranks) {
    known.insert(rank->rank);
    if (rank->sequence < 0) continue;
    if (first == nullptr || rank->sequence < first->sequence) first = rank;
  }
  if (first == nullptr) return;
  std::vector<int64_t> waiting;
  std::vector<int64_t> elsewhere;
  const WatchdogRank* other = nullptr;
  const WatchdogRank* late = nullptr;  // the fewest collectives enqueued
  bool enqueued_differ = false;
  for (const WatchdogRank* rank : ranks) {
    if (rank->sequence == first->sequence) {
      waiting.push_back(rank->rank);
      if (rank->operation != first->operation || rank->elements != first->elements) other = rank;
    } else if (rank->sequence >= 0) {
      elsewhere.push_back(rank->rank);
    }
    if (rank->last_enqueued < -1) continue;
    if (late != nullptr && rank->last_enqueued != late->last_enqueued) enqueued_differ = true;
    if (late == nullptr || rank->last_enqueued < late->last_enqueued) late = rank;
  }
  // Ranks in the logs that did not time out: most likely the ones waited for.
  std::vector<int64_t> silent;
  if (first->group.empty() || first->group.find("default") != std::string::npos ||
      first->group == "0") {
    for (const LoggedProcess& process : facts.processes) {
      if (process.rank >= 0 && known.count(process.rank) == 0) silent.push_back(process.rank);
    }
  }
  for (const WatchdogRank* rank : ranks) {
    if (rank->sequence < 0) silent.push_back(rank->rank);
  }
  Finding finding;
  finding.id = "hang.timeout";
  finding.severity = Severity::kError;
  finding.title = Format("Collective {} ({}) timed out on {}", first->sequence, Call(*first),
                         RankWords(waiting));
  if (first->milliseconds > 0) {
    finding.title += Format(" after {:.0f} s", static_cast<double>(first->milliseconds) / 1000);
  }
  if (!first->group.empty()) finding.title += " in group " + first->group;
  finding.evidence.push_back(facts.Where(first->place));
  if (other != nullptr) {
    finding.title += "; they did not call the same";
    finding.evidence.push_back(facts.Where(other->place));
    finding.action =
        "all ranks must call the same collectives with the same sizes in the same "
        "order; the two lines show where they part";
  } else if (!elsewhere.empty()) {
    finding.title += Format("; {} waited in a later one", RankWords(elsewhere));
    finding.action = Format(
        "ranks {} are further on or skipped it: compare their program's path "
        "(a branch that depends on data or rank)",
        RanksText(elsewhere));
  } else if (!silent.empty()) {
    finding.title += "; " + RankWords(silent) + " did not time out";
    finding.action = Format(
        "look at rank {} first: it never came to this collective, or its "
        "process had ended",
        RanksText(silent));
  } else if (enqueued_differ) {
    finding.action = Format("look at rank {} first: it had called the fewest collectives ({})",
                            late->rank, late->last_enqueued);
  } else {
    finding.action =
        "every rank called it and none got through: look at the network between them "
        "(NCCL_DEBUG=INFO), and write flight recorder dumps next time "
        "(TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1)";
  }
  if (enqueued_differ && late != nullptr) finding.evidence.push_back(facts.Where(late->status));
  findings->push_back(std::move(finding));
}

}  // namespace

void DiagnoseWatchdog(const LogFacts& facts, std::vector<Finding>* findings) {
  std::map<std::string, std::vector<const WatchdogRank*>> groups;
  for (const WatchdogRank& rank : facts.watchdog.ranks) groups[rank.group].push_back(&rank);
  size_t said = 0;
  for (const auto& [group, ranks] : groups) {
    if (said++ == 8) break;
    WatchdogGroup(facts, ranks, findings);
  }
}

void DiagnoseFlight(const LogFacts& facts, std::vector<Finding>* findings) {
  for (Finding& finding : flight_recorder::Diagnose(facts.flight)) {
    findings->push_back(std::move(finding));
  }
}

}  // namespace diapason::logs
