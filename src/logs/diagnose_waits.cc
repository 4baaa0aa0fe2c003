// Ranks that wait for others, from PyTorch's flight recorder.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "logs/diagnose.h"

namespace diapason::logs {
namespace {

// "rank 3", "ranks 0-2"
std::string RankWords(const std::vector<int64_t>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + RanksText(ranks);
}

// The earliest collective of a group that a rank has not finished, and where the ranks are.
struct OpenCollective {
  const FlightRank* open = nullptr;  // the rank that has not finished it
  const FlightRank* last = nullptr;  // the rank that is furthest behind; null: all have entered it
  std::string group;
  std::vector<int64_t> missing;
  std::vector<int64_t> inside;
  std::vector<int64_t> past;
  std::vector<int64_t> without_dump;

  // All of them in the same running collective.
  bool Healthy() const {
    return missing.empty() && past.empty() && without_dump.empty() &&
           open->open_operation.ends_with("started");
  }
};

std::optional<OpenCollective> FindOpen(const FlightRecord& flight, uint32_t group,
                                       const std::vector<const FlightRank*>& ranks) {
  OpenCollective found;
  for (const FlightRank* rank : ranks) {
    if (rank->first_open < 0) continue;
    if (found.open == nullptr || rank->first_open < found.open->first_open) found.open = rank;
  }
  if (found.open == nullptr) return std::nullopt;
  const int64_t sequence = found.open->first_open;
  std::set<int64_t> seen;
  for (const FlightRank* rank : ranks) {
    seen.insert(rank->rank);
    if (rank->last_enqueued < sequence) {
      found.missing.push_back(rank->rank);
      if (found.last == nullptr || rank->last_enqueued < found.last->last_enqueued) {
        found.last = rank;
      }
    } else if (rank->last_completed >= sequence) {
      found.past.push_back(rank->rank);
    } else {
      found.inside.push_back(rank->rank);
    }
  }
  found.group = "group " + flight.groups[group];
  const auto about = flight.about.find(group);
  if (about == flight.about.end()) return found;
  if (!about->second.description.empty()) found.group += " (" + about->second.description + ")";
  for (const int64_t rank : about->second.ranks) {
    if (seen.count(rank) == 0) found.without_dump.push_back(rank);
  }
  return found;
}

Finding RunningFinding(const LogFacts& facts, const OpenCollective& found) {
  return {"flight.running",
          Severity::kNote,
          Format("All ranks of {} were inside collective {} ({})", found.group,
                 found.open->first_open, found.open->open_operation),
          {facts.Where(Spot{found.open->file, 0})},
          "if it hung there, the network or a GPU is at fault: no rank is late"};
}

Finding HangFinding(const LogFacts& facts, const OpenCollective& found) {
  const FlightRank& open = *found.open;
  const FlightRank* last = found.last;
  Finding finding;
  finding.id = "hang.flight";
  finding.severity =
      found.missing.empty() && found.without_dump.empty() ? Severity::kWarning : Severity::kError;
  finding.title = Format("Collective {} of {} ({}) was entered by {}", open.first_open, found.group,
                         open.open_operation, RankWords(found.inside));
  if (!found.missing.empty()) finding.title += " and not by " + RankWords(found.missing);
  if (!found.past.empty()) finding.title += "; " + RankWords(found.past) + " had finished it";
  if (!found.without_dump.empty()) {
    finding.title += "; no dump of " + RankWords(found.without_dump);
  }
  finding.evidence.push_back(facts.Where(Spot{open.file, 0}) + ": rank " +
                             std::to_string(open.rank) + " in " + open.open_operation +
                             (open.open_frame.empty() ? "" : " from " + open.open_frame));
  if (last != nullptr) {
    finding.evidence.push_back(Format("{}: rank {} had enqueued up to {}, completed up to {}",
                                      facts.Where(Spot{last->file, 0}), last->rank,
                                      last->last_enqueued, last->last_completed));
    finding.action = Format(
        "look at rank {} first: it is the last; what it did instead of "
        "calling this collective is the cause",
        last->rank);
  } else if (!found.without_dump.empty()) {
    finding.action =
        "look at the ranks without a dump first: they had ended or were stuck "
        "outside of the library";
  } else {
    finding.action = "no rank is missing: look at the network of the ranks that had not finished";
  }
  return finding;
}

Finding MismatchFinding(const FlightRecord& flight, const FlightDisagreement& difference) {
  const auto first = static_cast<long long>(difference.ranks[0]);
  const auto second = static_cast<long long>(difference.ranks[1]);
  return {"op.mismatch",
          Severity::kError,
          Format("Ranks {} and {} called different things as collective {} of group {}", first,
                 second, difference.sequence, flight.groups[difference.group]),
          {Format("rank {}: {}", first, difference.calls[0]),
           Format("rank {}: {}", second, difference.calls[1])},
          "all ranks must call the same collectives with the same sizes and types, in the same "
          "order"};
}

}  // namespace

void DiagnoseFlight(const LogFacts& facts, std::vector<Finding>* findings) {
  const FlightRecord& flight = facts.flight;
  std::map<uint32_t, std::vector<const FlightRank*>> groups;
  for (const FlightRank& rank : flight.ranks) groups[rank.group].push_back(&rank);
  size_t said = 0;
  for (const auto& [group, ranks] : groups) {
    if (said == 8) break;
    const std::optional<OpenCollective> open = FindOpen(flight, group, ranks);
    if (!open) continue;
    findings->push_back(open->Healthy() ? RunningFinding(facts, *open) : HangFinding(facts, *open));
    ++said;
  }
  for (size_t i = 0; i < flight.disagreements.size() && i < 4; ++i) {
    findings->push_back(MismatchFinding(flight, flight.disagreements[i]));
  }
}

}  // namespace diapason::logs
