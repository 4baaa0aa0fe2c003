#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "launch/launcher.h"
#include "launch/program.h"
#include "measure/rank_measurer.h"
#include "measure/wire.h"

namespace diapason::measure {

// A job of ranks that is started for measuring, and started again when a configuration hangs or
// crashes it: the measuring itself survives every configuration. Its ranks are helper processes
// (measure/worker.h): rank 0 reads orders and answers each with a line.
struct JobMeasurerOptions {
  launch::Launcher launcher;
  std::string backend = "auto";
  std::string cluster;       // of the simulated one
  double limit = 20;         // seconds a wait of the ranks may take
  double start_limit = 120;  // until the ranks are there
  double grace = 10;         // beyond their own limits, before ranks that say nothing are given up
  uint64_t seed = 1;
  // Trials may name configurations, which loads our plugin into the ranks.
  bool choose = true;
  // Ranks that have to be started again and do not come (a host that is slow to answer, a port that
  // is still in use) are tried so often in a row, with a wait between two tries that doubles. With
  // settings of their own, which may be what they fail of: twice. 0: ranks that are gone stay gone.
  int restarts = 6;
  double restart_wait = 1;  // seconds, the first
  // Every configuration gets a launch of its own, as tools do that can only set the environment.
  bool launch_each = false;
  // What the ranks and their libraries print goes to standard error, instead of its end into
  // messages.
  bool show_output = false;
};

class JobMeasurer : public RankMeasurer {
 public:
  // Starts the ranks once, to find out who they are. Ranks that do not come now never will: one
  // try.
  static Result<std::unique_ptr<JobMeasurer>> Create(JobMeasurerOptions options);

  // An error: the ranks cannot be started any more, after as many tries as the options say. With a
  // setting of its own that is a crash of the configuration instead.
  Result<Measurement> Measure(const Trial& trial) override;
  Result<Measurement> MeasurePair(int first, int second, uint64_t bytes, int iterations) override;
  // An error where the ranks failed; the next call starts them again.
  Result<IterationTimes> Iterate(const IterationSpec& spec) override;
  const Subject& subject() const override { return subject_; }
  // The ranks' clock: virtual under the simulated cluster.
  double Now() const override;

  int launches() const override { return launches_; }
  bool broken() const override { return options_.restarts == 0 && program_ == nullptr; }

 private:
  explicit JobMeasurer(JobMeasurerOptions options) : options_(std::move(options)) {}

  // What the running ranks were started for.
  struct Running {
    std::string environment;
    Config config;
  };
  Result<Subject> Launch(const std::string& environment);
  Status LaunchAgain(const std::string& environment);
  // Ranks with our own environment; those that are running are kept.
  Status EnsureRunning();
  // The answer to an order, which takes at most so many seconds.
  Result<std::string> Ask(const Order& order, double seconds);
  Result<Measurement> AskMeasurement(const Order& order);
  Measurement Lost(const Status& status);

  JobMeasurerOptions options_;
  Subject subject_;
  std::unique_ptr<launch::Program> program_;
  Running running_;
  std::set<std::string> failing_;  // environments with which no ranks came
  int launches_ = 0;
  double simulated_seconds_ = 0;
};

// What a rank that cannot go on prints, so that the job's measurer returns that error.
std::string FailureLine(const Status& status);

// What the ranks of such a job do. `input` gives rank 0 the next line, or an error at the end;
// `output` takes its answers.
Status ServeOrders(Group* group, const std::string& cluster,
                   const std::function<Result<std::string>()>& input,
                   const std::function<Status(const std::string&)>& output);

}  // namespace diapason::measure
