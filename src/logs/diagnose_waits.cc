// Ranks that wait for others: from PyTorch's watchdog and its flight recorder.
#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "logs/diagnose.h"

namespace diapason::logs {
namespace {

std::string Call(const WatchdogRank& rank) {
  std::string text = rank.operation.empty() ? "a collective" : rank.operation;
  if (rank.elements >= 0) {
    text += Format(" of %lld elements", static_cast<long long>(rank.elements));
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
  finding.title = Format("Collective %lld (%s) timed out on %s %s",
                         static_cast<long long>(first->sequence), Call(*first).c_str(),
                         waiting.size() == 1 ? "rank" : "ranks", RanksText(waiting).c_str());
  if (first->milliseconds > 0) {
    finding.title += Format(" after %.0f s", static_cast<double>(first->milliseconds) / 1000);
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
    finding.title += Format("; %s %s waited in a later one",
                            elsewhere.size() == 1 ? "rank" : "ranks", RanksText(elsewhere).c_str());
    finding.action = Format(
        "ranks %s are further on or skipped it: compare their program's path "
        "(a branch that depends on data or rank)",
        RanksText(elsewhere).c_str());
  } else if (!silent.empty()) {
    finding.title += Format("; %s %s did not time out", silent.size() == 1 ? "rank" : "ranks",
                            RanksText(silent).c_str());
    finding.action = Format(
        "look at rank %s first: it never came to this collective, or its "
        "process had ended",
        RanksText(silent).c_str());
  } else if (enqueued_differ) {
    finding.action =
        Format("look at rank %lld first: it had called the fewest collectives (%lld)",
               static_cast<long long>(late->rank), static_cast<long long>(late->last_enqueued));
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
  const FlightRecord& flight = facts.flight;
  size_t said = 0;
  std::map<uint32_t, std::vector<const FlightRank*>> groups;
  for (const FlightRank& rank : flight.ranks) groups[rank.group].push_back(&rank);
  for (const auto& [group, ranks] : groups) {
    if (said >= 8) break;
    const auto about = flight.about.find(group);
    std::string name = "group " + flight.groups[group];
    if (about != flight.about.end() && !about->second.description.empty()) {
      name += " (" + about->second.description + ")";
    }
    // The earliest collective that a rank has not finished.
    const FlightRank* open = nullptr;
    for (const FlightRank* rank : ranks) {
      if (rank->first_open < 0) continue;
      if (open == nullptr || rank->first_open < open->first_open) open = rank;
    }
    if (open == nullptr) continue;
    const int64_t sequence = open->first_open;
    std::vector<int64_t> missing;
    std::vector<int64_t> inside;
    std::vector<int64_t> past;
    std::set<int64_t> seen;
    const FlightRank* last = nullptr;
    for (const FlightRank* rank : ranks) {
      seen.insert(rank->rank);
      if (rank->last_enqueued < sequence) {
        missing.push_back(rank->rank);
        if (last == nullptr || rank->last_enqueued < last->last_enqueued) last = rank;
      } else if (rank->last_completed >= sequence) {
        past.push_back(rank->rank);
      } else {
        inside.push_back(rank->rank);
      }
    }
    std::vector<int64_t> without_dump;
    if (about != flight.about.end()) {
      for (const int64_t rank : about->second.ranks) {
        if (seen.count(rank) == 0) without_dump.push_back(rank);
      }
    }
    // All of them in the same running collective: a healthy job.
    if (missing.empty() && past.empty() && without_dump.empty() &&
        open->open_operation.ends_with("started")) {
      findings->push_back({"flight.running",
                           Severity::kNote,
                           Format("All ranks of %s were inside collective %lld (%s)", name.c_str(),
                                  static_cast<long long>(sequence), open->open_operation.c_str()),
                           {facts.Where(Spot{open->file, 0})},
                           "if it hung there, the network or a GPU is at fault: no rank is late"});
      ++said;
      continue;
    }
    Finding finding;
    finding.id = "hang.flight";
    finding.severity =
        missing.empty() && without_dump.empty() ? Severity::kWarning : Severity::kError;
    finding.title =
        Format("Collective %lld of %s (%s) was entered by %s %s", static_cast<long long>(sequence),
               name.c_str(), open->open_operation.c_str(), inside.size() == 1 ? "rank" : "ranks",
               RanksText(inside).c_str());
    if (!missing.empty()) {
      finding.title += Format(" and not by %s %s", missing.size() == 1 ? "rank" : "ranks",
                              RanksText(missing).c_str());
    }
    if (!past.empty()) {
      finding.title += Format("; %s %s had finished it", past.size() == 1 ? "rank" : "ranks",
                              RanksText(past).c_str());
    }
    if (!without_dump.empty()) {
      finding.title += Format("; no dump of %s %s", without_dump.size() == 1 ? "rank" : "ranks",
                              RanksText(without_dump).c_str());
    }
    finding.evidence.push_back(facts.Where(Spot{open->file, 0}) + ": rank " +
                               std::to_string(open->rank) + " in " + open->open_operation +
                               (open->open_frame.empty() ? "" : " from " + open->open_frame));
    if (last != nullptr) {
      finding.evidence.push_back(
          Format("%s: rank %lld had enqueued up to %lld, completed up to %lld",
                 facts.Where(Spot{last->file, 0}).c_str(), static_cast<long long>(last->rank),
                 static_cast<long long>(last->last_enqueued),
                 static_cast<long long>(last->last_completed)));
      finding.action = Format(
          "look at rank %lld first: it is the last; what it did instead of "
          "calling this collective is the cause",
          static_cast<long long>(last->rank));
    } else if (!without_dump.empty()) {
      finding.action =
          "look at the ranks without a dump first: they had ended or were stuck "
          "outside of the library";
    } else {
      finding.action = "no rank is missing: look at the network of the ranks that had not finished";
    }
    findings->push_back(std::move(finding));
    ++said;
  }
  said = 0;
  for (const FlightDisagreement& difference : flight.disagreements) {
    if (said++ == 4) break;
    findings->push_back(
        {"op.mismatch",
         Severity::kError,
         Format("Ranks %lld and %lld called different things as collective %lld of group %s",
                static_cast<long long>(difference.ranks[0]),
                static_cast<long long>(difference.ranks[1]),
                static_cast<long long>(difference.sequence),
                flight.groups[difference.group].c_str()),
         {Format("rank %lld: %s", static_cast<long long>(difference.ranks[0]),
                 difference.calls[0].c_str()),
          Format("rank %lld: %s", static_cast<long long>(difference.ranks[1]),
                 difference.calls[1].c_str())},
         "all ranks must call the same collectives with the same sizes and types, in the same "
         "order"});
  }
}

}  // namespace diapason::logs
