#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/commands/bench/bench_result.h"
#include "cli/commands/ranks.h"
#include "measure/bench.h"
#include "measure/group_measurer.h"

namespace diapason::cli {

class CommandLine;

// The command line of `diapason bench`.
struct BenchOptions {
  RankOptions ranks;
  std::vector<std::string> collectives = {"allreduce"};
  std::string sizes;  // "": by the four below
  std::string from = "8";
  std::string to;  // "": 128M on GPUs, 8M elsewhere
  double factor = 2;
  std::string step;  // "": by factor
  measure::Effort effort;
  int rounds = 0;  // 0: until the interval is tight
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
  std::string policy;  // a file to check by running it
  std::string store;
};

// What -d and -o take: names with commas between them, or "all".
Result<std::vector<DataType>> ParseTypes(const std::string& text);
Result<std::vector<ReduceOp>> ParseReductions(const std::string& text);

// Everything to measure, in order. REQUIRES: `subject` is who will be measured.
Result<std::vector<measure::Trial>> PlanBench(const BenchOptions& options,
                                              const measure::Subject& subject);

// The bandwidth of a link each way: as given, as the backend knows it, or as measured between
// neighbours. `*source` says which.
Result<double> FindLink(const BenchOptions& options, measure::GroupMeasurer* measurer,
                        std::string* source);

// Rank 0's part of `bench --targets`: measures what the targets need, prints the comparison and
// returns the exit status, 1 when one is missed.
int CompareWithTargets(const BenchOptions& options, measure::GroupMeasurer* measurer);

// Rank 0's part of `bench --policy`: measures what the policy decides for every call and the
// library's own choice in turns, prints the comparison and returns the exit status, 1 when results
// are wrong.
int CheckPolicyByRunning(const BenchOptions& options, measure::GroupMeasurer* measurer);
// REQUIRES: the options that --policy does not go with are there.
void AddPolicyOption(CommandLine* bench, BenchOptions* options);

// Adds what was measured to a store, as a run of its own.
Status KeepSamples(const std::string& path, const measure::Subject& subject,
                   const std::vector<dataset::Sample>& samples);

// `bench --backend all`: this command once for every backend that works here, side by side.
int BenchAllBackends(const BenchOptions& options);

// Below `bench`.
void AddBenchPairs(CommandLine* bench, std::function<int()>* run);

}  // namespace diapason::cli
