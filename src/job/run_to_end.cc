#include "job/run_to_end.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/text.h"
#include "launch/processes.h"
#include "process/sessions.h"

namespace diapason::job {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int kSignalled = 128;
// How long processes that outlive the command may take to leave before they are asked to.
constexpr milliseconds kToLeave{500};
// How long they have from then on.
constexpr milliseconds kLeftGrace{5000};
// How long a process may take to die of SIGKILL: longer only when the kernel holds it.
constexpr milliseconds kToDie{5000};
// timeout(1) signals its child and then the child's group: two signals, one request.
constexpr milliseconds kOneRequest{100};
// How often to look for processes whose end is not reported to us, and for output.
constexpr milliseconds kLook{20};
constexpr milliseconds kLeastAsk{5};
constexpr int kPatience = 3;  // the Ctrl-C that kills

bool InForeground() {
  return ::isatty(STDIN_FILENO) == 0 || ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
}

class Supervisor {
 public:
  explicit Supervisor(const SupervisionOptions& options)
      : options_(options), starter_(1, &signals_, nullptr) {}

  Result<Supervised> Run() {
    RETURN_IF_ERROR(signals_.Take());
    // From here on to the end, signals are for the command.
    struct Restore {
      const launch::Signals* signals;
      ~Restore() {
        signals->Restore();
        (void)::prctl(PR_SET_CHILD_SUBREAPER, 0);
      }
    } restore{&signals_};
    RETURN_IF_ERROR(starter_.Prepare());
    // Processes whose parents have ended come to us, and so stay in sight.
    (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
    RETURN_IF_ERROR(Start());
    if (options_.limit.count() > 0) limit_ = Clock::now() + options_.limit;
    ask_at_ = Clock::now() + AskEvery();
    while (ended_.started && phase_ != Phase::kOver) Wait();
    starter_.Finish();
    return ended_;
  }

 private:
  // kRunning: the command runs. kLeaving: it has ended, and others have a moment. kEnding: all that
  // is left has been asked to end. kKilling: it gets SIGKILL until nothing is left.
  enum class Phase { kRunning, kLeaving, kEnding, kKilling, kOver };

  Status Start() {
    process::SpawnOptions start;
    start.command = options_.command;
    start.environment = options_.environment;
    std::copy(std::begin(options_.streams), std::end(options_.streams), start.streams);
    // Without a terminal of its own it could not be stopped for reading this one from the
    // background, where the shell reads.
    if (start.streams[0] == process::kInherited && !InForeground()) {
      start.streams[0] = process::kNowhere;
    }
    int exec_error = 0;
    const Result<pid_t> pid = starter_.Start(0, std::move(start), &exec_error);
    if (pid.ok()) {
      pid_ = pid.value();
      return {};
    }
    if (exec_error == 0) return pid.status();
    const bool missing = exec_error == ENOENT || exec_error == ENOTDIR;
    const bool path = options_.command[0].find('/') != std::string::npos;
    ended_.started = false;
    ended_.status = missing ? 127 : 126;
    ended_.trouble = pid.status().message();
    if (missing && path) ended_.trouble += " (the file, or the interpreter it names)";
    if (missing && !path) {
      ended_.trouble = "cannot start '" + options_.command[0] + "': no such program is in PATH";
    }
    return {};
  }

  void Say(const std::string& text) const {
    if (options_.say) options_.say(text);
  }

  milliseconds AskEvery() const { return std::max(options_.ask_every, kLeastAsk); }

  int MillisecondsToWait(bool watches) const {
    auto until = Clock::now() + (phase_ != Phase::kRunning ? kLook : milliseconds(3'600'000));
    if (phase_ == Phase::kRunning && options_.enough) until = std::min(until, ask_at_);
    if (options_.watched >= 0 && !watches) until = std::min(until, read_at_);
    if (limit_) until = std::min(until, *limit_);
    if (deadline_) until = std::min(until, *deadline_);
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
    return static_cast<int>(std::max<int64_t>(left, 0));
  }

  void Wait() {
    const bool watches = options_.watched >= 0 && Clock::now() >= read_at_;
    pollfd polled[2] = {{signals_.fd(), POLLIN, 0}, {watches ? options_.watched : -1, POLLIN, 0}};
    (void)::poll(polled, 2, MillisecondsToWait(watches));
    if (polled[1].revents != 0) {
      const bool more = options_.read();
      read_at_ = Clock::now() + (more ? milliseconds(0) : kLook);
    }
    signalfd_siginfo info;
    bool reported = false;  // that a child has ended
    while (::read(signals_.fd(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
      if (info.ssi_signo == SIGCHLD) {
        reported = true;
      } else {
        HandleSignal(static_cast<int>(info.ssi_signo));
      }
    }
    if (reported) ReapOrphans();
    CheckCommand();
    HandleTime();
  }

  // The command stays unreaped until the end: so its id, by which its session is found, cannot be
  // that of another process.
  void CheckCommand() {
    if (has_ended_) return;
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
      return;
    }
    has_ended_ = true;
    const bool exited = info.si_code == CLD_EXITED;
    ended_.signal = exited ? 0 : info.si_status;
    ended_.status = exited ? info.si_status : kSignalled + info.si_status;
    if (phase_ == Phase::kRunning) {
      phase_ = Phase::kLeaving;
      deadline_ = Clock::now() + kToLeave;
    }
  }

  void ReapOrphans() const {
    for (const process::Descendant& one : process::DescendantsOf(::getpid(), starter_.keeper())) {
      const bool orphan = one.ended && one.parent == ::getpid() && one.pid != pid_;
      if (orphan) (void)::waitpid(one.pid, nullptr, WNOHANG);
    }
  }

  // What is alive, and ends with the command.
  std::vector<process::Descendant> Left() const {
    std::vector<process::Descendant> left = process::DescendantsOf(::getpid(), starter_.keeper());
    const bool all = options_.end_all || ended_.status != 0 || ended_.asked_by != 0 ||
                     ended_.limited || !has_ended_;
    std::erase_if(left, [&](const process::Descendant& one) {
      return one.ended || (!all && one.session != pid_);
    });
    return left;
  }

  void SignalAll(int signal) const {
    for (const process::Descendant& one : Left()) (void)::kill(one.pid, signal);
  }

  void HandleSignal(int signal) {
    const bool to_group = signal == SIGINT || signal == SIGQUIT || signal == SIGHUP;
    switch (signal) {
      case SIGTSTP:
        // Not SIGTSTP: in a session without a terminal it would do nothing.
        SignalAll(SIGSTOP);
        (void)::raise(SIGSTOP);
        return;
      case SIGCONT:
        SignalAll(SIGCONT);
        return;
      case SIGUSR1:
      case SIGUSR2:
      case SIGWINCH:
        if (!has_ended_) (void)::kill(pid_, signal);
        return;
      default:
        break;
    }
    const auto now = Clock::now();
    const bool again = asked_at_ && now - *asked_at_ < kOneRequest;
    asked_at_ = now;
    if ((signal == SIGINT || signal == SIGQUIT) && !again && ++interrupts_ >= kPatience) {
      Say(launch::SignalName(signal) + " for the third time; killing the command");
      return BeginKilling();
    }
    if (!has_ended_) (void)::kill(to_group ? -pid_ : pid_, signal);
    // Who is stopped could not act on it.
    SignalAll(SIGCONT);
    if (ended_.asked_by == 0) ended_.asked_by = signal;
    if (!deadline_ && options_.grace.count() > 0) deadline_ = now + options_.grace;
  }

  void AskToEnd(const std::string& why) {
    Say(why);
    limit_.reset();
    ended_.limited = true;
    (void)::kill(pid_, options_.end_signal);
    SignalAll(SIGCONT);
    if (options_.limit_grace.count() > 0) deadline_ = Clock::now() + options_.limit_grace;
  }

  void HandleTime() {
    const auto now = Clock::now();
    if (phase_ == Phase::kRunning && !ended_.limited) {
      if (limit_ && now >= *limit_) {
        AskToEnd(Format("the time limit of {:g} s is over; {} for the command",
                        static_cast<double>(options_.limit.count()) / 1000,
                        launch::SignalName(options_.end_signal)));
      } else if (options_.enough && now >= ask_at_) {
        if (options_.enough()) AskToEnd("enough was seen; ending the command");
        ask_at_ = Clock::now() + AskEvery();
      }
    }
    const bool late = deadline_ && now >= *deadline_;
    if (phase_ == Phase::kRunning) {
      if (!late) return;
      Say("the command has not ended in time; killing it");
      return BeginKilling();
    }
    const std::vector<process::Descendant> left = Left();
    if (has_ended_ && left.empty()) return Finish();
    if (phase_ == Phase::kLeaving && late) {
      Say(Format("ending {} that the command has left behind",
                 left.size() == 1 ? "1 process" : Format("{} processes", left.size())));
      phase_ = Phase::kEnding;
      deadline_ = now + (options_.grace.count() > 0 ? options_.grace : kLeftGrace);
      SignalAll(SIGTERM);
      SignalAll(SIGCONT);
    } else if (phase_ == Phase::kEnding && late) {
      BeginKilling();
    } else if (phase_ == Phase::kKilling && late) {
      Say(Format("warning: process {} does not end even on SIGKILL; leaving it",
                 left.empty() ? pid_ : left.front().pid));
      Finish();
    } else if (phase_ == Phase::kKilling) {
      SignalAll(SIGKILL);
    }
  }

  void BeginKilling() {
    ended_.killed = true;
    phase_ = Phase::kKilling;
    deadline_ = Clock::now() + kToDie;
    (void)::kill(-pid_, SIGKILL);  // needs no /proc; unreaped, the id is still its own
    SignalAll(SIGKILL);
  }

  void Finish() {
    phase_ = Phase::kOver;
    ReapOrphans();
    (void)::waitpid(pid_, nullptr, WNOHANG);
  }

  const SupervisionOptions& options_;
  launch::Signals signals_;
  launch::Starter starter_;
  pid_t pid_ = -1;
  Supervised ended_;
  bool has_ended_ = false;
  Phase phase_ = Phase::kRunning;
  std::optional<Clock::time_point> limit_;
  std::optional<Clock::time_point> deadline_;  // of the phase, or of a request to end
  std::optional<Clock::time_point> asked_at_;
  Clock::time_point ask_at_;   // when `enough` is asked next
  Clock::time_point read_at_;  // before which output is left where it is
  int interrupts_ = 0;
};

}  // namespace

Result<Supervised> RunToEnd(const SupervisionOptions& options) { return Supervisor(options).Run(); }

}  // namespace diapason::job
