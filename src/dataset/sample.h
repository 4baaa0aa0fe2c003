#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace diapason::dataset {

// What was measured: the properties that must be equal for two samples to be averaged. Names are
// those of the domain vocabulary ("allreduce", "ring", "ll128"), in printed form; "sendrecv",
// "gather" and "scatter", which have no tuner question, are also allowed.
struct Point {
  // A collective alone, or a whole iteration around it.
  enum class Kind : uint8_t { kCollective = 0, kIteration = 1 };
  Kind kind = Kind::kCollective;
  std::string collective;
  // As nccl-tests counts: the larger buffer of gathering and scattering collectives.
  uint64_t bytes = 0;
  int nodes = 1;
  int ranks = 1;
  std::string type = "f32";
  std::string reduce = "sum";  // "" without a reduction
  int root = -1;
  bool in_place = false;
  // The configuration; "", "", 0, 0 is the library's own choice.
  std::string algorithm;
  std::string protocol;
  int channels = 0;
  int64_t segment_bytes = 0;
  // Variables set for this measurement beyond the machine's environment: "NAME=VALUE", sorted and
  // separated by blanks. "NCCL_TUNER_PLUGIN=none": without the diapason plugin, where that matters.
  std::string environment;
  std::string workload;  // kIteration: the program around it, "ddp ..."

  bool IsDefault() const {
    return algorithm.empty() && protocol.empty() && channels == 0 && segment_bytes == 0 &&
           environment.empty();
  }
  // "ring/simple, 4 channels", "library default", followed by the environment.
  std::string ConfigText() const;
  // Same place and size, for any configuration: within a context configurations are compared.
  bool SameContext(const Point& other) const;
  friend auto operator<=>(const Point&, const Point&) = default;
  friend bool operator==(const Point&, const Point&) = default;
};

// How a measurement ended. Stored: values never change.
enum class SampleOutcome : uint8_t {
  kFine = 0,
  kWrong = 1,    // it computed wrong results; the time is invalid
  kHang = 2,     // it did not end within the limit
  kCrash = 3,    // a rank ended
  kRefused = 4,  // the library does not offer this configuration here
};
const char* OutcomeName(SampleOutcome outcome);  // "fine", "wrong", "hang", "crash", "refused"

// One measurement. Without a time (seconds is NaN) the outcome and the note say why.
struct Sample {
  Point point;
  int round = 0;                  // the repetition of this point in its run
  double seconds = std::nan("");  // per call, of the slowest rank
  // Half of the last printed digit, as a fraction of the value: 0.016 for 0.32. 0 for a value with
  // full precision.
  double coarse = 0;
  int64_t iterations = 1;  // number of calls averaged
  int64_t wrong = -1;      // wrong elements; -1: not checked
  SampleOutcome outcome = SampleOutcome::kFine;
  std::string note;  // the library's error message
  double at = 0;     // seconds since 1970
};

// The machine: the properties that must be equal for two runs to be comparable.
struct MachineInfo {
  std::string library;          // "nccl", "rccl", "gloo", "openmpi"; "" if unknown
  std::string library_version;  // "2.28.9"
  std::string gpu;              // "8x NVIDIA A100-SXM4-80GB"; "" for none
  std::string driver;
  std::string topology;  // "2 nodes of 8 ranks, ..."
  std::string hosts;     // "n1,n2"
  std::string tool;      // "diapason 0.1.0", "nccl-tests 2.17.9"
  bool simulated = false;
  std::map<std::string, std::string> environment;  // the relevant variables: NCCL_*, RCCL_*, ...
  friend bool operator==(const MachineInfo&, const MachineInfo&) = default;
};

// Samples that were taken together.
struct SampleRun {
  enum class State : uint8_t { kRunning = 0, kDone = 1, kInterrupted = 2 };
  // Globally unique: NewRunId(), or, for imports, a digest of the content, so that a file imported
  // twice is stored once.
  std::string id;
  std::string source;  // "sweep", "bench", "iteration", "import"
  std::string origin;  // the command line, or the file
  double started = 0;  // seconds since 1970
  State state = State::kRunning;
  std::string plan;  // the plan of the run as text; for --resume
  MachineInfo machine;
};
std::string NewRunId();

// nccl-tests' factor between algbw and busbw for any collective a Point may have.
double BusFactorOf(const std::string& collective, int ranks);
// Bytes per second.
double BusBandwidth(const Point& point, double seconds);

}  // namespace diapason::dataset
