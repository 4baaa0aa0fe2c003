// Why a launch is of no use, and what to do.
#include <sys/stat.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "job/outcome.h"
#include "job_tune/launches.h"
#include "launch/processes.h"

namespace diapason::job_tune {
namespace {

// Of each journal: enough for its communicators and first calls.
constexpr size_t kHead = size_t{4} << 20;
// A command that is silent for this share of its time, and no less than so many seconds, hangs.
constexpr double kSilent = 0.5;
constexpr double kLeastSilent = 10;

std::string Seconds(double seconds) { return Format("{:.3g} s", seconds); }

// What the command has printed at last, and where the rest is.
std::string Output(const Launch& launch) {
  if (launch.tail.empty()) return ". It has printed nothing";
  const std::string where = launch.log.empty() ? "" : ", whole in " + launch.log;
  return ". The end of its output" + where + ":\n" + launch.tail;
}

std::string NotStarted(const Launch& launch) {
  return launch.ended.trouble +
         (launch.ended.status == 127
              ? ". Check the name behind `--`; a script of this folder is ./NAME"
              : ". Make it executable (chmod +x), or name its interpreter in front of it");
}

std::string Failed(const Launch& launch, const job::JobOutcome& seen) {
  const job::Supervised& ended = launch.ended;
  std::string text = "the command ";
  if (ended.signal != 0) {
    text += "was ended by " + launch::SignalName(ended.signal);
  } else {
    text += Format("failed with status {}", ended.status);
  }
  text += " after " + Seconds(launch.seconds);
  if (seen.communicators == 0) {
    text += ", before it created a communicator";
  } else if (seen.calls == 0) {
    text += ", before its first collective";
  }
  if (ended.signal == SIGKILL) {
    text += ". The kernel or the batch system kills what needs too much memory: see dmesg";
  }
  // Without a call nothing was tried yet.
  const bool changed = launch.prepared.mode != job::JobMode::kObserve && seen.calls > 0;
  text += changed ? ". Run it with `diapason run --observe --`: if that fails too, it is not what "
                    "was tried here"
                  : ". Run it alone first: it has to succeed as it stands behind `--`, with an "
                    "empty standard input";
  return text + Output(launch);
}

// Seconds from the last line of a journal to the end; 0: not known.
double SilentFor(const Launch& launch) {
  const Result<uint64_t> limit = ParseBytes(launch.prepared.Variable("DIAPASON_JOURNAL_LIMIT"));
  time_t last = 0;
  for (const std::string& file : launch.prepared.Journals()) {
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0) continue;
    // A journal that is full says nothing about later calls.
    const auto size = static_cast<double>(info.st_size);
    if (limit.ok() && size > static_cast<double>(limit.value()) * 0.9) return 0;
    last = std::max(last, info.st_mtime);
  }
  // To its end, not to now: reading journals takes its time.
  const double end = static_cast<double>(launch.ended_ns) * 1e-9;
  const double silent = last == 0 ? 0 : end - static_cast<double>(last);
  return std::clamp(silent, 0.0, launch.seconds);
}

std::string EndedBy(const Launch& launch) {
  return launch.ended.killed ? "it did not end when it was asked to, and was killed"
                             : "it was asked to end, and did";
}

std::string Hung(const Launch& launch, const job::JobOutcome& seen) {
  const char* missing = seen.communicators == 0 ? "created no communicator" : "made no collective";
  return Format("the command {} within {}: {}", missing, Seconds(launch.limit), EndedBy(launch)) +
         ". If it needs longer to start, give a larger --budget; if it uses NCCL or RCCL at all, "
         "`NCCL_DEBUG=INFO` says whether they load the plugin; if it hangs, run it alone" +
         Output(launch);
}

std::string OfNoUse(const Launch& launch, const job::JobOutcome& seen) {
  if (seen.journals == 0 && !seen.unreadable.empty()) {
    return "the journals of the launch cannot be read: " + seen.unreadable.front() +
           ". Is there room on the disk? -o names another folder";
  }
  const bool timed_out = launch.ended.limited && !launch.enough;
  if (seen.calls == 0 && timed_out) return Hung(launch, seen);
  if (seen.communicators == 0) {
    const std::string why = seen.NothingSeenText(launch.prepared);
    return why + (launch.prepared.command.Starting().hosts > 1
                      ? ". Journals of other hosts are seen only if -o names a folder that all of "
                        "them share"
                      : "");
  }
  if (seen.calls == 0) {
    return Format(
        "the command created {} and made no collective that the library asks about: "
        "there is nothing to tune. Send and receive alone have no choices; otherwise give "
        "it more steps",
        Count(seen.communicators, "communicator"));
  }
  if (timed_out) {
    const double silent = SilentFor(launch);
    if (silent > std::max(kLeastSilent, kSilent * launch.seconds)) {
      return "the command hung: it made no call in its last " + Seconds(silent) + ", and " +
             EndedBy(launch) +
             ". Run it with `diapason run --observe --`: if that hangs too, it "
             "is not what was tried here" +
             Output(launch);
    }
  }
  if (job::AgreesOnCalls(launch.prepared.mode) && !seen.stood_aside.empty()) {
    return "the ranks left every choice to the library: " + seen.stood_aside.front() +
           ". `diapason journal check` on " + launch.prepared.journal_dir +
           " says more; ranks on several hosts need --store";
  }
  return "";
}

}  // namespace

std::string Launches::Trouble(const Launch& launch) {
  if (launch.interrupted) return "the command was interrupted";
  if (!launch.ended.started) return NotStarted(launch);
  job::JobOutcome seen = job::ReadOutcome(launch.prepared.Journals(), false, kHead);
  seen.status = launch.ended.limited ? 0 : launch.ended.status;
  if (!launch.Fine()) return Failed(launch, seen);
  return OfNoUse(launch, seen);
}

}  // namespace diapason::job_tune
