#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "dataset/sample.h"
#include "diapason/comm.h"
#include "domain/vocabulary.h"

namespace diapason::measure {

// One thing to measure once: a block of calls, started together on all ranks, back to back.
struct Trial {
  // Any collective; kSend stands for sendrecv, every rank sending to the next.
  Operation operation = Operation::kAllReduce;
  uint64_t bytes = 0;  // as nccl-tests counts
  DataType type = DataType::kF32;
  ReduceOp reduce = ReduceOp::kSum;
  int root = 0;
  bool in_place = false;
  Config config;
  // What has to be set before the ranks start: "NAME=VALUE NAME=VALUE", sorted; "" is nothing.
  std::string environment;

  // A whole step of an iteration instead of the call alone: what EncodeSpec says of it. `config` is
  // then for the buckets of this operation and size, the others run as the spec has them;
  // `iterations` are steps. "": the call alone.
  std::string workload;

  // Only the first so many ranks take part, for scaling; 0: all.
  int only_ranks = 0;

  int warmups = 0;
  int iterations = 1;
  bool check = false;  // one more call whose results are compared, element by element

  friend bool operator==(const Trial&, const Trial&) = default;
};

// What came of it.
struct Measurement {
  dataset::SampleOutcome outcome = dataset::SampleOutcome::kFine;
  double seconds = 0;  // per call, of the slowest rank; only where the outcome is kFine
  double fastest = 0;  // of the fastest rank: the difference is skew, or a root that runs ahead
  int iterations = 0;
  int64_t wrong = -1;  // elements, over all ranks; -1: not checked
  std::string note;    // why not kFine

  // The ranks hang or are gone.
  bool broke() const {
    return outcome == dataset::SampleOutcome::kHang || outcome == dataset::SampleOutcome::kCrash;
  }
};

// Who is being measured.
struct Subject {
  std::string backend;  // "nccl", "sim", "replay"
  Library library = Library::kNccl;
  int ranks = 1;
  int nodes = 1;
  bool simulated = false;
  double link_peak = 0;            // bytes per second; 0: not known
  std::string description;         // "gloo 0.5.0, tcp on lo; ..."
  std::vector<std::string> hosts;  // of every rank, where there are ranks
  dataset::MachineInfo machine;
};

// Something that can be measured: a running group of ranks, a job that is started for it, programs
// of others, or a dataset that is replayed. Search strategies see only this.
class Measurer {
 public:
  virtual ~Measurer() = default;
  // Starts what has to be started. The trials' environments may come in any order, but every change
  // can cost a launch.
  virtual Result<Measurement> Measure(const Trial& trial) = 0;
  virtual const Subject& subject() const = 0;
  // Seconds, on the clock of what is measured: a replay's clock shows what the samples took.
  virtual double Now() const = 0;
  // How often ranks were started for it.
  virtual int launches() const { return 0; }
  // Readings that came along with those asked for, once each: what else a program of others has
  // printed. They are worth storing, and no part of a search.
  virtual std::vector<std::pair<Trial, Measurement>> TakeByproducts() { return {}; }
};

// "4 ranks share 2 cores, ..." where more ranks than cores run on this host; "" elsewhere: such
// figures are those of the scheduler too.
std::string CrowdedText(const Subject& subject);

// "allreduce", "sendrecv"; and back, however people write it.
std::string CollectiveText(Operation operation);
Result<Operation> ParseMeasured(std::string_view name);

// The elements a call has by comm.h's rules, where the bytes are by nccl-tests'.
size_t CountOf(const Trial& trial, int ranks);
// The bytes of whole elements on every rank: what of the trial's bytes really travels.
uint64_t WholeBytes(const Trial& trial, int ranks);
// "float": a type as nccl-tests has it.
const char* TestsTypeName(DataType type);

// The point of a dataset that a trial is about, and back. An algorithm that the library does not
// have is an error.
dataset::Point PointOf(const Trial& trial, const Subject& subject);
Result<Trial> TrialOf(const dataset::Point& point, Library library);
// What the store keeps of a reading, taken now.
dataset::Sample SampleOf(const Trial& trial, const Subject& subject,
                         const Measurement& measurement);

}  // namespace diapason::measure
