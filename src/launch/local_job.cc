#include "launch/local_job.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/text.h"
#include "process/sessions.h"

namespace diapason::launch {
namespace {

using std::chrono::milliseconds;

constexpr int kExitFailed = 1;
constexpr int kExitTimedOut = 124;
constexpr int kSignalled = 128;
// How long processes that outlive their rank may take to leave before they are asked to.
constexpr milliseconds kLeaving{500};
// How long a process may take to die of SIGKILL: longer only when the kernel holds it.
constexpr milliseconds kKilling{5000};
// timeout(1) signals its child and then the child's group: two signals, one request. A person's
// second Ctrl-C comes later than this.
constexpr milliseconds kOneRequest{100};
// How often to look for processes whose end is not reported to us.
constexpr milliseconds kLook{20};

bool SameFile(int one, int other) {
  struct stat first;
  struct stat second;
  return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

std::string Seconds(milliseconds time) {
  return Format("{:g} s", static_cast<double>(time.count()) / 1000);
}

}  // namespace

LocalJob::LocalJob(LocalJobOptions options)
    : options_(std::move(options)),
      starter_(static_cast<int>(options_.environments.size()), &signals_, options_.secret),
      out_(STDOUT_FILENO),
      separate_err_(SameFile(STDOUT_FILENO, STDERR_FILENO) ? nullptr
                                                           : std::make_unique<Sink>(STDERR_FILENO)),
      err_(separate_err_ == nullptr ? &out_ : separate_err_.get()) {
  ranks_.resize(options_.environments.size());
}

int LocalJob::Run() {
  if (const Status started = Start(); !started.ok()) {
    Say("error: " + started.message());
    if (!status_) status_ = kExitFailed;
    if (phase_ == Phase::kRunning) BeginEnding(SIGTERM);
  }
  while (phase_ != Phase::kOver || out_.pending() || err_->pending()) Wait();
  return ExitStatus();
}

Status LocalJob::Start() {
  RETURN_IF_ERROR(signals_.Take());
  RETURN_IF_ERROR(starter_.Prepare());
  if (options_.timeout.count() > 0) time_limit_ = Clock::now() + options_.timeout;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    RETURN_IF_ERROR(StartRank(static_cast<int>(i)));
    // A job of thousands is started in seconds: long enough to fail, or to be called off.
    HandleSignals();
    if (phase_ != Phase::kRunning) break;
  }
  return {};
}

Status LocalJob::StartRank(int number) {
  Rank& rank = ranks_[static_cast<size_t>(number)];
  process::SpawnOptions start;
  start.command = options_.command;
  start.environment = options_.environments[static_cast<size_t>(number)];
  // Without a terminal of its own a rank could not be stopped for reading this one, but it would
  // take from the shell what a person types.
  const int name = NameOf(static_cast<size_t>(number));
  const bool takes_input = name == 0 && ::isatty(STDIN_FILENO) == 0;
  start.streams[0] = takes_input ? process::kInherited : process::kNowhere;
  Descriptor theirs[2];
  for (int which = 0; which < 2; ++which) {
    const std::string log = options_.log_dir.empty() ? ""
                                                     : Format("{}/rank-{}.{}", options_.log_dir,
                                                              name, which == 0 ? "out" : "err");
    Sink* shown = which == 0 ? &out_ : err_;
    ASSIGN_OR_RETURN(theirs[which],
                     rank.streams[which].Open(name, options_.prefix ? shown : nullptr, log));
    start.streams[which + 1] = theirs[which].get();
  }
  int exec_error = 0;
  const Result<pid_t> pid = starter_.Start(number, std::move(start), &exec_error);
  if (!pid.ok()) {
    // What a shell returns for a program that is not there, or cannot be executed.
    const bool missing = exec_error == ENOENT || exec_error == ENOTDIR;
    if (exec_error != 0) status_ = missing ? 127 : 126;
    const bool path = options_.command[0].find('/') != std::string::npos;
    const char* hint =
        exec_error == ENOENT && path ? " (the file, or the interpreter it names)" : "";
    return Status::Error(pid.status().code(), pid.status().message() + hint);
  }
  rank.pid = pid.value();
  sessions_.insert(std::upper_bound(sessions_.begin(), sessions_.end(), rank.pid), rank.pid);
  return {};
}

int LocalJob::MillisecondsToWait() const {
  if (phase_ == Phase::kOver) return -1;
  // All may have ended while they were being started.
  if (phase_ == Phase::kRunning && Running() == 0) return 0;
  const auto now = Clock::now();
  auto until = Clock::time_point::max();
  if (phase_ == Phase::kRunning && time_limit_) until = *time_limit_;
  if (phase_end_) until = std::min(until, *phase_end_);
  if (phase_ == Phase::kKilling || Running() == 0) until = std::min(until, now + kLook);
  if (until == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<milliseconds>(until - now).count();
  constexpr int64_t kMost = 3'600'000;
  return static_cast<int>(std::clamp<int64_t>(left, 0, kMost));
}

void LocalJob::Wait() {
  std::vector<pollfd> polled = {{signals_.fd(), POLLIN, 0}};
  std::vector<Sink*> sinks;
  for (Sink* sink : {&out_, separate_err_.get()}) {
    if (sink == nullptr || !sink->pending()) continue;
    sinks.push_back(sink);
    polled.push_back({sink->fd(), POLLOUT, 0});
  }
  std::vector<RankStream*> streams;
  for (Rank& rank : ranks_) {
    for (RankStream& stream : rank.streams) {
      if (!stream.WantsReading()) continue;
      streams.push_back(&stream);
      polled.push_back({stream.fd(), POLLIN, 0});
    }
  }
  if (::poll(polled.data(), polled.size(), MillisecondsToWait()) < 0) {
    for (pollfd& one : polled) one.revents = 0;
  }
  const pollfd* next = &polled[1];
  for (Sink* sink : sinks) {
    if ((next++)->revents != 0) sink->Flush();
  }
  for (RankStream* stream : streams) {
    if ((next++)->revents != 0) stream->Read();
  }
  if (polled[0].revents != 0) HandleSignals();
  CheckOutput();
  HandleTime();
}

void LocalJob::HandleSignals() {
  signalfd_siginfo info;
  while (::read(signals_.fd(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      CheckRanks(static_cast<pid_t>(info.ssi_pid));
    } else {
      HandleSignal(signal);
    }
  }
}

void LocalJob::HandleSignal(int signal) {
  switch (signal) {
    case SIGUSR1:
    case SIGUSR2:
    case SIGWINCH:
      // To the ranks alone: a helper process that knows nothing of the signal would die of it.
      for (const Rank& rank : ranks_) {
        if (rank.pid > 0 && !rank.ended) (void)::kill(rank.pid, signal);
      }
      return;
    case SIGTSTP:
      // Not SIGTSTP: in a session without a terminal it would do nothing.
      SignalAll(SIGSTOP);
      (void)::raise(SIGSTOP);
      return;
    case SIGCONT:
      SignalAll(SIGCONT);
      return;
    default:
      break;
  }
  const auto now = Clock::now();
  const bool impatient =
      (signal == SIGINT || signal == SIGQUIT) && interrupted_ && now - *interrupted_ >= kOneRequest;
  interrupted_ = now;
  if (phase_ == Phase::kOver) {
    // No process is left, and the reader of the rest has gone.
    ::_exit(ExitStatus());
  }
  if (impatient) {
    Say(SignalName(signal) + " again; killing all ranks");
    BeginKilling();
  } else if (phase_ == Phase::kRunning || phase_ == Phase::kLeaving) {
    Say(Format("{}; passed on to the ranks, which have {} to end", SignalName(signal),
               Seconds(options_.grace)));
    asked_by_ = signal;
    BeginEnding(signal);
  } else if (phase_ == Phase::kEnding) {
    SignalAll(signal);
  }
}

void LocalJob::HandleTime() {
  const auto now = Clock::now();
  if (phase_ == Phase::kOver) return;
  if (phase_ == Phase::kRunning && time_limit_ && now >= *time_limit_) {
    Say(Format("the time limit of {} is over; ending all ranks", Seconds(options_.timeout)));
    status_ = kExitTimedOut;
    BeginEnding(SIGTERM);
  }
  const bool late = phase_end_ && now >= *phase_end_;
  if (Running() > 0 && !late) return;

  const std::vector<process::SessionProcess> left = process::MembersOf(sessions_);
  if (Running() == 0 && left.empty()) {
    phase_ = Phase::kOver;
  } else if (phase_ == Phase::kRunning) {
    phase_ = Phase::kLeaving;
    phase_end_ = now + kLeaving;
  } else if (phase_ == Phase::kLeaving && late) {
    Say(Format("all ranks have ended; ending {} that they left behind",
               left.size() == 1 ? "1 process" : Format("{} processes", left.size())));
    BeginEnding(SIGTERM);
  } else if (phase_ == Phase::kEnding && late) {
    if (options_.grace.count() > 0) {
      Say(Format("some processes have not ended within {}; killing", Seconds(options_.grace)));
    }
    BeginKilling();
  } else if (phase_ == Phase::kKilling && late) {
    const pid_t held = left.empty() ? 0 : left.front().pid;
    Say(Format("warning: process {} does not end even on SIGKILL; leaving it", held));
    phase_ = Phase::kOver;
  } else if (phase_ == Phase::kKilling) {
    SignalAll(SIGKILL);
  }
  if (phase_ != Phase::kOver) return;

  phase_end_.reset();
  // For hosts whose /proc does not show who is left.
  for (const pid_t session : sessions_) (void)::kill(-session, SIGKILL);
  for (Rank& rank : ranks_) {
    for (RankStream& stream : rank.streams) {
      stream.ReadRest();
      stream.Close();
    }
    if (rank.ended) (void)::waitpid(rank.pid, nullptr, WNOHANG);
  }
  if (options_.secret != nullptr) options_.secret->Remove();
  starter_.Finish();
  // Orphans that came to us while everything was ended.
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

void LocalJob::CheckRanks(pid_t first) {
  // Several ends may have been reported as one: the one that is named was the first.
  bool is_rank = false;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].pid != first) continue;
    is_rank = true;
    CheckRank(i);
  }
  for (size_t i = 0; i < ranks_.size(); ++i) CheckRank(i);
  // An orphan that came to us because we are the first process of a container.
  if (!is_rank && first > 0 && first != starter_.keeper()) (void)::waitpid(first, nullptr, WNOHANG);
}

void LocalJob::CheckRank(size_t number) {
  Rank& rank = ranks_[number];
  if (rank.pid <= 0 || rank.ended) return;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(rank.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return;
  }
  rank.ended = true;
  // Its last words come before ours about it.
  for (RankStream& stream : rank.streams) stream.ReadRest();
  const bool exited = info.si_code == CLD_EXITED;
  if (exited && info.si_status == 0) return;
  const int status = exited ? info.si_status : kSignalled + info.si_status;
  if (phase_ == Phase::kRunning) {
    const std::string how = exited ? Format("exited with status {}", info.si_status)
                                   : "was killed by " + SignalName(info.si_status) +
                                         (info.si_code == CLD_DUMPED ? " (core dumped)" : "");
    const std::string host = options_.host.empty() ? "" : "host " + options_.host + ", ";
    Say(Format("rank {} ({}pid {}) {}{}", NameOf(number), host, static_cast<int>(rank.pid), how,
               Running() > 0 ? "; ending the others" : ""));
    status_ = status;
    BeginEnding(SIGTERM);
  } else if (!status_) {
    // After a signal to us. What we killed ourselves did not choose its status.
    status_ = phase_ == Phase::kKilling && asked_by_ != 0 ? kSignalled + asked_by_ : status;
  }
}

void LocalJob::CheckOutput() {
  for (Rank& rank : ranks_) {
    for (RankStream& stream : rank.streams) {
      if (const int error = stream.TakeLogError(); error != 0) {
        Say("warning: cannot write a file of --log-dir: " + ErrnoText(error));
        status_of_output_ = kExitFailed;
      }
    }
  }
  for (Sink* sink : {&out_, separate_err_.get()}) {
    if (sink == nullptr || sink->error() == 0) continue;
    if (options_.prefix) {
      status_of_output_ = sink->error() == EPIPE ? kSignalled + SIGPIPE : kExitFailed;
    }
    // The ranks learn of it as if they had written there themselves.
    for (Rank& rank : ranks_) {
      for (RankStream& stream : rank.streams) {
        if (stream.sink() == sink) stream.Close();
      }
    }
  }
}

void LocalJob::BeginEnding(int signal) {
  phase_ = Phase::kEnding;
  phase_end_ = Clock::now() + options_.grace;
  // Orphans become our children, so that none stays behind as a zombie.
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
  SignalAll(signal);
  // Who is stopped could not act on it.
  SignalAll(SIGCONT);
}

void LocalJob::BeginKilling() {
  phase_ = Phase::kKilling;
  phase_end_ = Clock::now() + kKilling;
  SignalAll(SIGKILL);
}

void LocalJob::SignalAll(int signal) { (void)process::SignalSessions(sessions_, signal); }

void LocalJob::Say(const std::string& text) {
  err_->Add("diapason: " + text + "\n");
  // Before what the ranks say about what we do next.
  err_->Flush();
}

size_t LocalJob::Running() const {
  return static_cast<size_t>(std::count_if(
      ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.pid > 0 && !rank.ended; }));
}

int LocalJob::ExitStatus() const { return status_.value_or(status_of_output_); }

}  // namespace diapason::launch
