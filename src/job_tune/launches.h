#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/environment.h"
#include "job/prepare.h"
#include "job/run_to_end.h"
#include "job_tune/interrupts.h"
#include "job_tune/metric.h"
#include "job_tune/request.h"

namespace diapason::job_tune {

// At which a journal of a launch ends, unless DIAPASON_JOURNAL_LIMIT is set.
inline constexpr uint64_t kJournalBytes = uint64_t{256} << 20;

// How the command is started once.
struct LaunchPlan {
  std::string purpose;  // "look and search", "verify 2"; for the user and the name of the log
  job::JobMode mode = job::JobMode::kObserve;
  std::string policy;  // a file; "": none, whatever the environment names
  // Further variables for the ranks: DIAPASON_JOURNAL_TIMES and the like.
  std::vector<job::RankVariable> variables;
  // Seconds after which the command is asked to end; 0: when the budget is over.
  double limit = 0;
  // Asked every `ask_every` while the command runs, by the same thread; true asks it to end. May
  // use the store of the job and read its journals.
  std::function<bool(const job::PreparedJob&)> enough;
  std::chrono::milliseconds ask_every{250};
};

// What came of it.
struct Launch {
  int number = 0;  // from 1 on
  std::string purpose;
  double seconds = 0;
  uint64_t ended_ns = 0;      // since 1970
  job::PreparedJob prepared;  // with its journals
  job::Supervised ended;
  bool enough = false;       // LaunchPlan::enough has ended it, not a limit
  double limit = 0;          // seconds that it had
  bool begun = false;        // not if the user wanted to end before
  bool interrupted = false;  // the user wants to end (SIGINT, SIGTERM), also between two launches
  std::optional<double> metric;
  std::string log;   // the file with its output
  std::string tail;  // its last lines, printable
  // The command ended by itself, with success or because it was asked to.
  bool Fine() const;
};

// Starts the command again and again, one launch at a time. Its output goes to a file of the output
// folder, `launch-N.log`, of which the first and the last megabyte are kept; its standard input is
// empty. The journals of a launch are in `journals/launch-N`. Between two launches it runs
// Request::between. Ranks and scripts find DIAPASON_LAUNCH=N in their environment, N from 1 on: a
// script that must not write checkpoints while it is tuned looks whether it is set. Everything that
// a launch has started is ended with it.
//
// Policies of the environment do not apply: DIAPASON_POLICY and the like are removed. Where a
// metric is asked for, PYTHONUNBUFFERED is set, so that it is printed before the command is ended.
//
// `say` gets sentences for the user. REQUIRES: a process with one thread (job::RunToEnd).
class Launches {
 public:
  // The budget begins now.
  Launches(const Request& request, const Environment& environment,
           std::function<void(const std::string&)> say);

  // How many there have been, how many there may be, and how many of these are left.
  int count() const { return count_; }
  int most() const { return most_; }
  int left() const { return std::max(0, most_ - count_); }
  // There are calls that can be tried by launches alone: there may be more, unless the request has
  // a number.
  void AllowForGraphs();
  // Of the budget, in seconds; at least 0.
  double SecondsLeft() const;
  // A signal of the user has come between two launches.
  static bool interrupted() { return Interrupts::signal() != 0; }
  // Fails if the command cannot be prepared, if --between fails, or if no launch is left. A command
  // that cannot be started or fails is no failure of this function: Launch::ended says so.
  Result<Launch> Run(const LaunchPlan& plan);
  // Why a launch is of no use, and what to do: it failed at once, hung, made no collective; "" if
  // it is of use. Reads the beginnings of its journals.
  static std::string Trouble(const Launch& launch);

 private:
  struct Output;
  Status Begin();
  Result<job::PreparedJob> Prepare(const LaunchPlan& plan);
  Status RunBetween(Output* output, Launch* launch);
  Result<job::Supervised> Supervise(job::SupervisionOptions options, Output* output);
  void Say(const std::string& text) const;

  const Request request_;
  const Environment& environment_;
  std::function<void(const std::string&)> say_;
  const Deadline end_;
  std::string folder_;  // the output folder, absolute: a command may be started elsewhere
  int64_t started_;     // seconds since 1970: a part of the names of jobs
  Interrupts interrupts_;
  int most_ = 0;
  int count_ = 0;
  bool warned_ = false;
};

}  // namespace diapason::job_tune
