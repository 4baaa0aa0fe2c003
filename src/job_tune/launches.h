#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "job/prepare.h"
#include "job/run_to_end.h"
#include "job_tune/metric.h"
#include "job_tune/request.h"

namespace diapason::job_tune {

// How the command is started once.
struct LaunchPlan {
  std::string purpose;  // "look and search", "verify 2"; for the user and the name of the log
  job::JobMode mode = job::JobMode::kObserve;
  std::string policy;  // a file; "": none
  // Further variables for the ranks: DIAPASON_JOURNAL_TIMES and the like.
  std::vector<job::RankVariable> variables;
  double limit = 0;  // seconds after which the command is asked to end; 0: none
  // Asked every `ask_every` while the command runs, by the same thread; true asks it to end. May
  // use the store of the job and read its journals.
  std::function<bool(const job::PreparedJob&)> enough;
  std::chrono::milliseconds ask_every{250};
};

// What came of it.
struct Launch {
  std::string purpose;
  double seconds = 0;
  job::PreparedJob prepared;  // with its journals
  job::Supervised ended;
  bool interrupted = false;  // the user wants to end (SIGINT, SIGTERM)
  std::optional<double> metric;
  std::string log;   // the file with its output
  std::string tail;  // its last lines, printable
  // The command ended by itself, with success or because it was asked to.
  bool Fine() const;
};

// Starts the command again and again, one launch at a time. Its output goes to a file of the output
// folder, `launch-N.log`, of which the first and the last megabyte are kept. Between two launches
// it runs Request::between. Ranks and scripts find DIAPASON_LAUNCH=N in their environment, N from 1
// on: a script that must not write checkpoints while it is tuned looks whether it is set.
class Launches {
 public:
  Launches(const Request& request, const Environment& environment,
           std::function<void(const std::string&)> say);

  // How many there have been, and how many there may still be.
  int count() const;
  int left() const;
  // Fails if the command cannot be prepared or started, if --between fails, or if no launch is
  // left. A command that fails is no failure of this function: Launch::ended says so.
  Result<Launch> Run(const LaunchPlan& plan);
  // Why a launch is of no use, and what to do: it failed at once, hung, made no collective; "" if
  // it is of use.
  static std::string Trouble(const Launch& launch);
};

}  // namespace diapason::job_tune
