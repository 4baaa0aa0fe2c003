#include <algorithm>
#include <set>

#include "base/text.h"
#include "watch/ras_judge.h"

namespace diapason::watch {
namespace {

constexpr double kStoppedSeconds = 1;
constexpr double kGoneSeconds = 2;
constexpr double kGoneUnansweredSeconds = 3;
constexpr double kBehindSeconds = 3;
constexpr double kBehindFirstSeconds = 5;  // no pause of this job has been seen yet
constexpr double kMostBehindSeconds = 60;
constexpr int kStillAnswers = 2;
constexpr int kBehindAnswers = 3;
constexpr size_t kShownRanks = 16;

std::string NumberList(const std::vector<int>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size() && i < kShownRanks; ++i) {
    text += Format("{}{}", i == 0 ? "" : ", ", numbers[i]);
  }
  if (numbers.size() > kShownRanks) text += Format(" and {} more", numbers.size() - kShownRanks);
  return text;
}

std::string RankList(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + NumberList(ranks);
}

std::string CommunicatorName(const std::string& hash) {
  return hash.empty() ? "a communicator" : "communicator " + hash;
}

}  // namespace

const char* RasVerdictName(RasVerdictKind kind) {
  switch (kind) {
    case RasVerdictKind::kOpen:
      return "open";
    case RasVerdictKind::kAdvance:
      return "advance";
    case RasVerdictKind::kIdle:
      return "idle";
    case RasVerdictKind::kEven:
      return "even";
    case RasVerdictKind::kEnded:
      return "ended";
    case RasVerdictKind::kBehind:
      return "behind";
    case RasVerdictKind::kDiffer:
      return "differ";
    case RasVerdictKind::kSilent:
      return "unresponsive";
    case RasVerdictKind::kStopped:
      return "stopped";
    case RasVerdictKind::kGone:
      return "gone";
  }
  return "open";
}

bool IsBlame(RasVerdictKind kind) { return kind >= RasVerdictKind::kBehind; }

std::string RasJudge::Name(const Rank& rank) const {
  const int pid = rank.local != 0 ? static_cast<int>(rank.local) : rank.last.pid;
  const std::string host = rank.last.host.empty() ? "unknown host" : rank.last.host;
  if (pid < 0) return rank.last.host.empty() ? "" : host;
  return Format("{}:{}", host, pid);
}

// "rank 2 (127.0.0.1:4713) is", "ranks 2 (...), 3 (...) are"
std::string RasJudge::Names(const Comm& comm, const std::vector<int>& ranks, const char* one,
                            const char* many) const {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size() && i < kShownRanks; ++i) {
    const auto rank = comm.ranks.find(ranks[i]);
    const std::string name = rank == comm.ranks.end() ? "" : Name(rank->second);
    text += Format("{}{}", i == 0 ? "" : ", ", ranks[i]);
    if (!name.empty()) text += " (" + name + ")";
  }
  if (ranks.size() > kShownRanks) text += Format(" and {} more", ranks.size() - kShownRanks);
  return text + " " + (ranks.size() == 1 ? one : many);
}

// A rank that answers, and whose process runs.
bool RasJudge::Waits(const Rank& rank) const {
  const Process* process = ProcessOf(rank);
  return rank.last.absence == RasAbsence::kNone &&
         (process == nullptr || (process->ended_s < 0 && process->stopped_since_s < 0));
}

bool RasJudge::StandsStill(const Comm& comm, double since_s) const {
  return comm.still >= kStillAnswers && comm.answered_s > since_s;
}

// "; ranks 0, 1, 3 wait for it in AllReduce 118 of communicator 0x8a1c00ff". The collective is the
// one that advanced last, or the only one that was ever launched.
std::string RasJudge::WaitText(const Comm& comm, const RasVerdict& verdict) const {
  if (verdict.waiting.empty()) return "";
  size_t function = comm.function;
  size_t launched = 0;
  const auto count = [&](int number, size_t f) {
    const std::vector<uint64_t>& counts = comm.ranks.at(number).counts;
    return f < counts.size() && counts[f] != kUnknownCount ? counts[f] : 0;
  };
  for (size_t f = 0; f < functions_.size() && comm.function == SIZE_MAX; ++f) {
    if (count(verdict.waiting[0], f) == 0) continue;
    function = ++launched == 1 ? f : SIZE_MAX;
  }
  std::string text = Format("; {} {} for {} in ", RankList(verdict.waiting),
                            verdict.waiting.size() == 1 ? "waits" : "wait",
                            verdict.ranks.size() == 1 ? "it" : "them");
  if (function < functions_.size()) {
    uint64_t number = UINT64_MAX;
    for (const int rank : verdict.waiting) number = std::min(number, count(rank, function));
    if (number > 0) text += Format("{} {} of ", functions_[function], number);
  }
  return text + CommunicatorName(comm.hash);
}

bool RasJudge::FindGone(double now_s, const Comm& comm, RasVerdict* verdict) const {
  double ended_s = 0;
  bool failed = false;
  bool ending = false;
  for (const auto& [number, rank] : comm.ranks) {
    const Process* process = ProcessOf(rank);
    if (rank.last.absence == RasAbsence::kLeft) continue;
    if (process != nullptr && process->ended_s >= 0) {
      verdict->ranks.push_back(number);
      ended_s = std::max(ended_s, process->ended_s);
    } else if (rank.last.absence == RasAbsence::kDead) {
      verdict->ranks.push_back(number);
      ended_s = std::max(ended_s, rank.absent_since_s);
    } else if (Waits(rank)) {
      verdict->waiting.push_back(number);
      // An abort also sets the flag of an ordinary end.
      failed |= rank.last.async_error != 0 || rank.last.aborted;
      ending |= rank.last.ending && !rank.last.aborted;
    }
  }
  // At the end of a healthy job ranks leave one after the other.
  if (verdict->ranks.empty() || ending || verdict->waiting.size() < verdict->ranks.size() ||
      now_s - ended_s < kGoneSeconds) {
    return false;
  }
  const bool unanswered = comm.answered_s <= ended_s && now_s - ended_s >= kGoneUnansweredSeconds;
  if (!failed && !unanswered && !StandsStill(comm, ended_s)) return false;
  verdict->kind = RasVerdictKind::kGone;
  verdict->since_s = now_s - ended_s;
  verdict->text = Names(comm, verdict->ranks, "is gone", "are gone");
  if (unanswered && !failed) {
    verdict->text +=
        Format("; {} still {} {}", RankList(verdict->waiting),
               verdict->waiting.size() == 1 ? "has" : "have", CommunicatorName(comm.hash));
  } else {
    verdict->text += WaitText(comm, *verdict);
  }
  return true;
}

bool RasJudge::FindStopped(double now_s, const Comm& comm, RasVerdict* verdict) const {
  bool traced = false;
  double since_s = 0;
  for (const auto& [number, rank] : comm.ranks) {
    const Process* process = ProcessOf(rank);
    if (process != nullptr && process->stopped_since_s >= 0) {
      if (now_s - process->stopped_since_s < kStoppedSeconds) continue;
      verdict->ranks.push_back(number);
      since_s = std::max(since_s, process->stopped_since_s);
      traced |= process->state == 't';
    } else if (Waits(rank)) {
      verdict->waiting.push_back(number);
    }
  }
  if (verdict->ranks.empty()) return false;
  verdict->kind = RasVerdictKind::kStopped;
  verdict->since_s = now_s - since_s;
  verdict->text = Names(comm, verdict->ranks, traced ? "is stopped by a debugger" : "is stopped",
                        traced ? "are stopped by a debugger" : "are stopped");
  if (StandsStill(comm, since_s)) {
    verdict->text += WaitText(comm, *verdict);
  } else {
    verdict->waiting.clear();
  }
  return true;
}

bool RasJudge::FindSilent(double now_s, const Comm& comm, RasVerdict* verdict) const {
  double since_s = now_s;
  for (const auto& [number, rank] : comm.ranks) {
    const Process* process = ProcessOf(rank);
    if (process != nullptr && process->ended_s >= 0) continue;  // see FindGone
    if (rank.absences >= kStillAnswers) {
      verdict->ranks.push_back(number);
      since_s = std::min(since_s, rank.absent_since_s);
    } else if (Waits(rank)) {
      verdict->waiting.push_back(number);
    }
  }
  if (verdict->ranks.empty() || verdict->waiting.empty() || comm.still < kStillAnswers) {
    return false;
  }
  verdict->kind = RasVerdictKind::kSilent;
  verdict->since_s = now_s - since_s;
  verdict->text = Names(comm, verdict->ranks, "is unresponsive to RAS", "are unresponsive to RAS") +
                  Format(" for {:.0f} s", verdict->since_s);
  const Rank& first = comm.ranks.at(verdict->ranks[0]);
  if (const Process* process = ProcessOf(first); process != nullptr && process->state == 'D') {
    verdict->text += ", and in the kernel";
  }
  verdict->text += WaitText(comm, *verdict);
  return true;
}

// The ranks with the lowest sum of counts. False if the ranks have all launched the same, or it is
// unknown. `differ`: the lowest ranks have launched more of another collective.
bool RasJudge::LowestRanks(const Comm& comm, RasVerdict* verdict, bool* differ) const {
  std::map<int, uint64_t> sums;
  std::set<size_t> open;  // functions whose counts are not known of all
  for (const auto& [number, rank] : comm.ranks) {
    if (rank.last.absence != RasAbsence::kNone || rank.last.initialising) return false;
    for (size_t f = 0; f < functions_.size(); ++f) {
      if (f >= rank.counts.size() || rank.counts[f] == kUnknownCount) open.insert(f);
    }
  }
  std::vector<uint64_t> highest(functions_.size(), 0);
  for (const auto& [number, rank] : comm.ranks) {
    for (size_t f = 0; f < functions_.size(); ++f) {
      if (open.contains(f)) continue;
      sums[number] += rank.counts[f];
      highest[f] = std::max(highest[f], rank.counts[f]);
    }
  }
  if (sums.size() < 2) return false;
  const auto low = std::min_element(
      sums.begin(), sums.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  bool uneven = false;
  for (const auto& [number, sum] : sums) {
    (sum == low->second ? verdict->ranks : verdict->waiting).push_back(number);
    for (size_t f = 0; f < functions_.size(); ++f) {
      uneven |= !open.contains(f) && comm.ranks.at(number).counts[f] < highest[f];
    }
  }
  *differ = uneven && verdict->waiting.empty();
  for (const int number : verdict->ranks) {
    for (size_t f = 0; f < functions_.size() && !verdict->waiting.empty(); ++f) {
      if (open.contains(f)) continue;
      const uint64_t own = comm.ranks.at(number).counts[f];
      *differ |= std::any_of(verdict->waiting.begin(), verdict->waiting.end(),
                             [&](int other) { return comm.ranks.at(other).counts[f] < own; });
    }
  }
  return uneven;
}

bool RasJudge::FindBehind(const Comm& comm, RasVerdict* verdict) const {
  bool differ = false;
  if (comm.still < kBehindAnswers || !LowestRanks(comm, verdict, &differ)) return false;
  const double longest =
      comm.gaps.empty() ? 0 : *std::max_element(comm.gaps.begin(), comm.gaps.end());
  const double limit = comm.gaps.empty()
                           ? kBehindFirstSeconds
                           : std::clamp(2 * longest, kBehindSeconds, kMostBehindSeconds);
  verdict->since_s = comm.answered_s - comm.advanced_s;
  if (verdict->since_s < limit) return false;
  if (differ) {
    verdict->kind = RasVerdictKind::kDiffer;
    if (verdict->waiting.empty()) verdict->ranks.clear();
    verdict->text = Format(
        "the ranks have launched different collectives of {}, and none has advanced for {:.0f} s",
        CommunicatorName(comm.hash), verdict->since_s);
    return true;
  }
  verdict->kind = RasVerdictKind::kBehind;
  const Rank& first = comm.ranks.at(verdict->ranks[0]);
  std::vector<std::string> missed;
  for (size_t f = 0; f < functions_.size() && f < first.counts.size(); ++f) {
    if (first.counts[f] == kUnknownCount) continue;
    const bool ahead =
        std::any_of(verdict->waiting.begin(), verdict->waiting.end(),
                    [&](int other) { return comm.ranks.at(other).counts[f] > first.counts[f]; });
    if (ahead) missed.push_back(Format("{} {}", functions_[f], first.counts[f] + 1));
  }
  const std::string collective = Join(missed, " or ");
  verdict->text = Names(comm, verdict->ranks, "has", "have") + " not come to " + collective;
  if (const Process* process = ProcessOf(first); process != nullptr && process->state == 'D') {
    verdict->text += " (in the kernel)";
  }
  verdict->text += Format("; {} {} for {} in {} of {}, for {:.0f} s", RankList(verdict->waiting),
                          verdict->waiting.size() == 1 ? "waits" : "wait",
                          verdict->ranks.size() == 1 ? "it" : "them", collective,
                          CommunicatorName(comm.hash), verdict->since_s);
  return true;
}

}  // namespace diapason::watch
