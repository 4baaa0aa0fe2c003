#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "launch/launch_secret.h"
#include "launch/processes.h"
#include "launch/rank_output.h"

namespace diapason::launch {

struct LocalJobOptions {
  std::vector<std::string> command;
  // One for each rank.
  std::vector<std::vector<std::string>> environments;
  int first_rank = 0;  // what the first of them is called
  std::string host;    // named beside ranks in messages; "": it is not
  bool prefix = false;
  std::string log_dir;  // "": no files
  std::chrono::milliseconds grace{5000};
  std::chrono::milliseconds timeout{0};  // 0: none
  // Removed when the job is over, or when the launcher is killed.
  std::shared_ptr<const LaunchSecret> secret;
};

// The ranks of one launch, from the first to the last process. docs/commands/launch.md says what a
// user sees; the life of a job is:
//
//   running   until all ranks have ended, one fails, a signal asks for the end, or the time is over
//   leaving   all ranks have ended, processes they started have not: those get a moment
//   ending    all processes have been asked to end, and have the grace period to do so
//   killing   all processes get SIGKILL, again and again until none is left
//   over      only what has been written is still on its way to the reader
//
// Ranks that have ended stay unreaped until the end: so their process ids, by which the sessions
// are found, cannot be reused by another process.
class LocalJob {
 public:
  explicit LocalJob(LocalJobOptions options);
  // The exit status of the launch.
  int Run();

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase { kRunning, kLeaving, kEnding, kKilling, kOver };

  struct Rank {
    pid_t pid = -1;
    bool ended = false;
    RankStream streams[2];
  };

  Status Start();
  Status StartRank(int number);
  int NameOf(size_t number) const { return options_.first_rank + static_cast<int>(number); }

  void Wait();
  int MillisecondsToWait() const;
  void HandleSignals();
  void HandleSignal(int signal);
  void HandleTime();
  void CheckRank(size_t number);
  void CheckRanks(pid_t first);

  // What could not be written.
  void CheckOutput();

  void BeginEnding(int signal);
  void BeginKilling();
  void SignalAll(int signal);
  void Say(const std::string& text);
  size_t Running() const;
  int ExitStatus() const;

  LocalJobOptions options_;
  Signals signals_;
  Starter starter_;
  Sink out_;
  std::unique_ptr<Sink> separate_err_;  // null when both outputs are one file
  Sink* err_;
  std::vector<Rank> ranks_;
  std::vector<pid_t> sessions_;  // sorted
  Phase phase_ = Phase::kRunning;
  std::optional<Clock::time_point> time_limit_;
  std::optional<Clock::time_point> phase_end_;
  std::optional<Clock::time_point> interrupted_;
  std::optional<int> status_;
  int asked_by_ = 0;          // the signal that asked the launcher to end
  int status_of_output_ = 0;  // when what the ranks wrote could not be passed on
};

}  // namespace diapason::launch
