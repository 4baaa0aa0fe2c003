#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/commands/bench/bench_result.h"
#include "cli/commands/compare/compare.h"
#include "cli/commands/ranks.h"
#include "cli/framework/command.h"
#include "measure/bench.h"
#include "measure/rank_measurer.h"

namespace diapason::cli {

class CommandLine;

// The command line of `diapason bench`.
struct BenchOptions {
  RankOptions ranks;
  std::vector<std::string> collectives = {"allreduce"};
  std::string sizes;  // "": defined by the four options below
  std::string from = "8";
  std::string to;  // "": 128M on GPUs, 8M elsewhere
  double factor = 2;
  std::string step;  // "": by factor
  measure::Effort effort;
  int rounds = 0;  // 0: until the interval is narrow
  int check = 1;
  std::string reduce = "sum";
  std::string type = "float";
  int root = 0;
  std::string algorithm;
  std::string protocol;
  int channels = 0;
  double link = 0;  // GB/s
  bool json = false;
  bool figures = false;  // for `env tune`: a line that it reads
  bool csv = false;
  std::string targets;
  std::string policy;  // policy file to compare with the library's choice
  std::string store;
  std::string against;  // old measurements to compare with
  double budget = 120;  // seconds, of --against
  int launches = 20;    // most of them, of --against
  ComparisonOutput comparison;
};

// Parses -d and -o: names separated by commas, or "all".
Result<std::vector<DataType>> ParseTypes(const std::string& text);
Result<std::vector<ReduceOp>> ParseReductions(const std::string& text);

// All trials, in order. REQUIRES: `subject` is the library and machine that will be measured.
Result<std::vector<measure::Trial>> PlanBench(const BenchOptions& options,
                                              const measure::Subject& subject);

// Whether a call of the benchmark may name a configuration, which loads our plugin.
bool Chooses(const BenchOptions& options);

// Measures all trials, and gives every row to `on_row` as soon as it is there. On an error
// `*result` has the rows before it. `*samples` gets every round.
Status MeasureBench(const BenchOptions& options, measure::RankMeasurer* measurer,
                    const std::function<void(const BenchRow&)>& on_row, BenchResult* result,
                    std::vector<dataset::Sample>* samples);

// The part of rank 0 in `bench --targets`: measures the targets, prints the comparison and returns
// the exit status, 1 if a target is missed.
Result<int> CompareWithTargets(const BenchOptions& options, measure::RankMeasurer* measurer);

// The part of rank 0 in `bench --policy`: measures the policy's choice and the library's own choice
// for every call, alternating, prints the comparison and returns the exit status, 1 if results are
// wrong.
Result<int> CheckPolicyByRunning(const BenchOptions& options, measure::RankMeasurer* measurer);
// REQUIRES: the options that exclude --policy have been added.
void AddPolicyOption(CommandLine* bench, BenchOptions* options);

// Adds the measurements to a store as a new run; no store for an empty path.
Status KeepSamples(const std::string& path, const measure::Subject& subject,
                   const std::vector<dataset::Sample>& samples);

// `bench --backend all`: runs this command once for every backend that works on this host, and
// prints the results side by side.
Result<int> BenchAllBackends(const BenchOptions& options);

// `bench --against`: measures the calls of old measurements in fresh launches until every call is
// decided, within --budget and --launches. The second throws a UsageError where options contradict
// each other.
void AddAgainstOptions(CommandLine* bench, BenchOptions* options);
void CheckAgainstOptions(const BenchOptions& options);
Result<int> BenchAgainst(const BenchOptions& options);

// A subcommand of `bench`.
void AddBenchPairs(CommandLine* bench, CommandAction* run);

}  // namespace diapason::cli
