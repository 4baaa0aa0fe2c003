#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "diapason/comm.h"

namespace diapason::measure {

// The iteration proxy: compute and collectives overlapped in buckets, as a training step does it.
//
// A step computes `chunks` equal chunks one after the other. Every bucket is one collective that
// begins when some of them are done, and whose result a later one needs.

// One collective of a step.
struct Bucket {
  Operation operation = Operation::kAllReduce;
  uint64_t bytes = 0;    // as nccl-tests counts
  int communicator = 0;  // buckets of one run in order, those of different ones at the same time
  int after = 0;         // begins when so many chunks have been computed
  int before = 0;  // so many chunks can be computed without its result; == after: none beside it
  Config config;   // needs GroupOptions::choose

  friend bool operator==(const Bucket&, const Bucket&) = default;
};

struct IterationSpec {
  std::string preset = "own";
  int steps = 20;          // of each kind: whole, compute alone, communication alone
  int warmups = 5;         // likewise, not counted
  double compute = 0.005;  // seconds of compute in a step
  int chunks = 1;
  std::vector<Bucket> buckets;  // those with the same `after` begin in this order
  bool overlap = true;          // off: nothing is computed while a bucket is under way
  int communicators = 1;
  DataType type = DataType::kF32;
  int threads = 1;    // that compute, where there is no GPU
  double limit = 60;  // seconds that waiting for compute may take

  friend bool operator==(const IterationSpec&, const IterationSpec&) = default;
};

struct PresetOptions {
  int parts = 0;       // ddp: buckets; the others: layers. 0: the preset's own number
  uint64_t bytes = 0;  // of every bucket; 0: the preset's own size
  bool host = false;   // sizes for collectives of processors, which are much slower than GPUs'
};
// ddp, fsdp, tp or moe; docs/commands/iteration.md describes them.
Result<IterationSpec> PresetSpec(std::string_view name, const PresetOptions& options);
std::vector<std::string> PresetNames();

// Every number within its bounds, every bucket within the step.
Status CheckSpec(const IterationSpec& spec);
// One line of printable text without a line feed, for sending a spec to another process. Decoding
// believes nothing: what comes back has passed CheckSpec.
std::string EncodeSpec(const IterationSpec& spec);
Result<IterationSpec> DecodeSpec(std::string_view text);

// Seconds, in the order they were measured. Of every step the slowest rank's time counts.
struct IterationTimes {
  std::vector<double> steps;
  std::vector<double> compute;        // the same compute without collectives
  std::vector<double> communication;  // the same collectives without compute
};

// Every rank of the group calls this, with the same spec. The three kinds are measured in blocks
// that take turns, so that drift hits all alike. Nothing is exchanged about times before the end.
Result<IterationTimes> RunIterations(Group* group, const IterationSpec& spec);

// A step that is prepared once and then run again and again, with other configurations each time.
// Every rank of the group makes the same calls.
class PreparedIteration {
 public:
  // Connects, allocates, and finds out what a second of compute is.
  static Result<std::unique_ptr<PreparedIteration>> Create(Group* group, const IterationSpec& spec);
  ~PreparedIteration();
  PreparedIteration(const PreparedIteration&) = delete;
  PreparedIteration& operator=(const PreparedIteration&) = delete;

  // Whole steps, after some that do not count; `configs` are those of the spec's buckets. Seconds
  // of each step, the slowest rank's.
  Result<std::vector<double>> Run(const std::vector<Config>& configs, int warmups, int steps);

 private:
  struct Parts;
  explicit PreparedIteration(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// "4 x allreduce 1MiB, 2 x allgather 4KiB": equal names together, in the order they first come.
std::string CountedText(const std::vector<std::string>& names);

// "ddp: 4 x allreduce 1MiB, 20 ms of compute": an iteration without its configurations, as datasets
// name it.
std::string WorkloadText(const IterationSpec& spec);

// What a step costs more than its compute: the difference of the medians, never negative.
double ExposedSeconds(const IterationTimes& times);
// The share of the communication that compute hides: 1 where nothing of it is exposed, 0 where all
// of it is, or more.
double OverlapEfficiency(const IterationTimes& times);

// One line a step at the end of the file, "allreduce,26214400,1,8,7.25": collective and bytes of
// the largest bucket (an all_to_all only where there is nothing else), nodes, ranks, and what the
// step took in milliseconds. Simulated steps are between two comments that say so. Written at once,
// so that lines of several writers do not mix.
Status AppendRewards(const std::string& path, const IterationSpec& spec,
                     const IterationTimes& times, int nodes, int ranks, bool simulated = false);

}  // namespace diapason::measure
