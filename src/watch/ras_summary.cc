#include <algorithm>

#include "base/text.h"
#include "watch/ras_judge.h"

// The verdict on the whole job, of those on its communicators.
namespace diapason::watch {
namespace {

constexpr double kStoppedProcessSeconds = 1;
constexpr double kPauseSeconds = 3;  // a rank that has launched nothing for longer is idle

}  // namespace

std::string RasJudge::OfProcess(const Process& process) const {
  if (process.process.rank < 0) return Format("process {}", static_cast<int>(process.process.pid));
  return Format("rank {} (process {})", process.process.rank,
                static_cast<int>(process.process.pid));
}

// Without an answer of RAS: what the processes themselves show.
bool RasJudge::FindOfProcesses(double now_s, RasVerdict* verdict) const {
  std::string gone;
  for (const auto& [pid, process] : processes_) {
    if (!process.abandoned) continue;
    if (process.process.rank >= 0) verdict->ranks.push_back(process.process.rank);
    gone += (gone.empty() ? "" : ", ") + OfProcess(process);
    verdict->since_s = std::max(verdict->since_s, now_s - process.ended_s);
  }
  if (!gone.empty()) {
    verdict->kind = RasVerdictKind::kGone;
    verdict->text = gone + (gone.find(", ") == std::string::npos ? " is" : " are") +
                    " gone; the others have given up the communicator";
    return true;
  }
  for (const auto& [pid, process] : processes_) {
    if (process.stopped_since_s < 0 || now_s - process.stopped_since_s < kStoppedProcessSeconds)
      continue;
    if (process.process.rank >= 0) verdict->ranks.push_back(process.process.rank);
    verdict->text += (verdict->text.empty() ? "" : ", ") + OfProcess(process);
    verdict->since_s = std::max(verdict->since_s, now_s - process.stopped_since_s);
    verdict->kind = RasVerdictKind::kStopped;
  }
  if (verdict->kind != RasVerdictKind::kStopped) return false;
  verdict->text += verdict->text.find(", ") == std::string::npos ? " is stopped" : " are stopped";
  return true;
}

bool RasJudge::AllEnded(RasVerdict* verdict) const {
  if (processes_.empty()) return false;
  const Process* first = nullptr;
  double second_s = -1;
  for (const auto& [pid, process] : processes_) {
    if (process.ended_s < 0) return false;
    if (first == nullptr || process.ended_s < first->ended_s) {
      second_s = first == nullptr ? -1 : first->ended_s;
      first = &process;
    } else if (second_s < 0 || process.ended_s < second_s) {
      second_s = process.ended_s;
    }
  }
  verdict->kind = RasVerdictKind::kEnded;
  verdict->text = processes_.size() == 1
                      ? OfProcess(*first) + " has ended"
                      : Format("all {} local ranks have ended", processes_.size());
  // Less is within the resolution of the samples.
  constexpr double kClearly = 0.5;
  if (processes_.size() > 1 && second_s - first->ended_s >= kClearly) {
    verdict->text += Format(": {} first, {:.1f} s before the next", OfProcess(*first),
                            second_s - first->ended_s);
    if (first->process.rank >= 0) verdict->ranks.push_back(first->process.rank);
  }
  return true;
}

RasVerdict RasJudge::Healthy(double now_s) const {
  RasVerdict verdict;
  std::map<std::string, double> advanced;  // by process: when; negative: never
  double latest_s = 0;
  int answers = 0;
  double pause = kPauseSeconds;
  std::string absent;
  for (const auto& [key, comm] : comms_) {
    if (comm.size < 2) continue;
    answers = std::max(answers, comm.answers);
    latest_s = std::max(latest_s, comm.advanced_s);
    for (const double gap : comm.gaps) pause = std::max(pause, 2 * gap);
    for (const auto& [number, rank] : comm.ranks) {
      if (rank.absences > 0 && absent.empty()) {
        absent = Names(comm, {number}, "does not answer RAS", "");
      }
      const std::string id =
          rank.local != 0
              ? Format("{}", static_cast<int>(rank.local)) + "/" + Format("{}", rank.last.pid)
              : Format("{}:{}:{}", rank.last.host, rank.last.pid, rank.last.pid < 0 ? number : 0);
      double& when = advanced.try_emplace(id, -1).first->second;
      if (rank.ever_advanced) when = std::max(when, rank.advanced_s);
    }
  }
  if (answers < 2) {
    verdict.text = answers == 0 ? "" : "RAS has answered once; counts are compared from the second";
    return verdict;
  }
  if (!absent.empty()) {
    verdict.text = absent;
    return verdict;
  }
  const auto moving = std::count_if(advanced.begin(), advanced.end(), [&](const auto& one) {
    return one.second >= 0 && now_s - one.second <= pause;
  });
  if (!json_ && moving == 0) {
    verdict.kind = RasVerdictKind::kEven;
    verdict.text = "RAS reports no rank that stays behind";
  } else if (static_cast<size_t>(moving) == advanced.size() && moving > 0) {
    verdict.kind = RasVerdictKind::kAdvance;
    verdict.text = moving == 1 ? "the rank advances"
                               : Format("all {} ranks advance", static_cast<int>(moving));
  } else {
    verdict.kind = RasVerdictKind::kIdle;
    verdict.since_s = now_s - latest_s;
    verdict.text = moving == 0 ? Format(
                                     "no rank has launched a collective for {:.0f} s, and none "
                                     "is behind",
                                     verdict.since_s)
                               : Format("{} of {} ranks advance; none stays behind",
                                        static_cast<int>(moving), advanced.size());
  }
  return verdict;
}

RasVerdict RasJudge::Judge(double now_s) const {
  RasVerdict ended;
  if (AllEnded(&ended)) return ended;
  std::vector<std::pair<const Comm*, RasVerdict>> found;
  for (const auto& [key, comm] : comms_) {
    if (comm.size < 2) continue;
    RasVerdict gone;
    RasVerdict stopped;
    RasVerdict silent;
    RasVerdict behind;
    if (FindGone(now_s, comm, &gone)) {
      found.emplace_back(&comm, gone);
    } else if (FindStopped(now_s, comm, &stopped)) {
      found.emplace_back(&comm, stopped);
    } else if (FindSilent(now_s, comm, &silent)) {
      found.emplace_back(&comm, silent);
    } else if (FindBehind(comm, &behind)) {
      found.emplace_back(&comm, behind);
    }
    if (!found.empty()) found.back().second.communicator = found.back().first->hash;
  }
  RasVerdict best;
  if (found.empty()) return FindOfProcesses(now_s, &best) ? best : Healthy(now_s);
  // A rank that is behind here may itself wait for another one there.
  const auto process = [](const Comm& comm, int number) {
    const Rank& rank = comm.ranks.at(number);
    return rank.local != 0 ? std::pair(std::string(), static_cast<int>(rank.local))
                           : std::pair(rank.last.host, rank.last.pid);
  };
  const auto waits_elsewhere = [&](const std::pair<const Comm*, RasVerdict>& one, int number) {
    return std::any_of(found.begin(), found.end(), [&](const auto& other) {
      return other.first != one.first &&
             std::any_of(other.second.waiting.begin(), other.second.waiting.end(), [&](int w) {
               return process(*other.first, w) == process(*one.first, number);
             });
    });
  };
  bool best_waits = true;
  for (const auto& one : found) {
    const bool waits = one.second.kind <= RasVerdictKind::kDiffer &&
                       std::all_of(one.second.ranks.begin(), one.second.ranks.end(),
                                   [&](int number) { return waits_elsewhere(one, number); });
    const bool better = !IsBlame(best.kind) || (best_waits && !waits) ||
                        (best_waits == waits && one.second.kind > best.kind);
    if (!better) continue;
    best = one.second;
    best_waits = waits;
  }
  return best;
}

Finding RasFinding(const RasVerdict& verdict) {
  Finding finding;
  finding.id = std::string("watch.rank-") + RasVerdictName(verdict.kind);
  finding.severity = IsBlame(verdict.kind) ? Severity::kWarning : Severity::kNote;
  finding.title = verdict.text;
  if (!verdict.communicator.empty()) {
    finding.evidence.push_back("communicator " + verdict.communicator + " in NCCL's RAS");
  } else {
    finding.evidence.emplace_back("the states of the processes in /proc");
  }
  switch (verdict.kind) {
    case RasVerdictKind::kStopped:
      finding.action = "Continue the process (kill -CONT PID), or find out what stopped it";
      break;
    case RasVerdictKind::kGone:
      finding.action = "Read the log of that rank, and the kernel's (dmesg: the OOM killer, Xid)";
      break;
    case RasVerdictKind::kSilent:
      finding.action = "Look at that process on its host: stopped, swapped, or cut off the network";
      break;
    case RasVerdictKind::kBehind:
      finding.action = "See what that rank does instead: py-spy dump --pid PID, or gdb -p PID";
      break;
    case RasVerdictKind::kDiffer:
      finding.action = "Compare the order of collectives in the program: ranks take other branches";
      break;
    default:
      break;
  }
  return finding;
}

}  // namespace diapason::watch
