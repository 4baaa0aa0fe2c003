#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace diapason::dataset {

// What was measured: everything that has to be equal before two samples may be averaged. Words are
// those of the vocabulary ("allreduce", "ring", "ll128"), in its one printed form; "sendrecv",
// "gather" and "scatter", which nobody is asked about, are fine here.
struct Point {
  // A collective alone, or a whole iteration around it.
  enum class Kind : uint8_t { kCollective = 0, kIteration = 1 };
  Kind kind = Kind::kCollective;
  std::string collective;
  uint64_t bytes = 0;  // as nccl-tests counts: the larger side of a gathering or scattering one
  int nodes = 1;
  int ranks = 1;
  std::string type = "f32";
  std::string reduce = "sum";  // "" where nothing is reduced
  int root = -1;
  bool in_place = false;
  // The configuration; "", "", 0, 0 is the library's own choice.
  std::string algorithm;
  std::string protocol;
  int channels = 0;
  int64_t segment_bytes = 0;
  // What was set for this measurement beyond the machine's own environment: "NAME=VALUE" sorted and
  // separated by blanks. "NCCL_TUNER_PLUGIN=none": without our plugin, where that matters.
  std::string environment;
  std::string workload;  // kIteration: what ran around it, "ddp ..."

  bool IsDefault() const {
    return algorithm.empty() && protocol.empty() && channels == 0 && segment_bytes == 0 &&
           environment.empty();
  }
  // "ring/simple, 4 channels", "library default", with the environment behind it.
  std::string ConfigText() const;
  // The same place and size, whatever the configuration: those are what configurations compete in.
  bool SameContext(const Point& other) const;
  friend auto operator<=>(const Point&, const Point&) = default;
  friend bool operator==(const Point&, const Point&) = default;
};

// How a measurement ended. Stored: values never change.
enum class SampleOutcome : uint8_t {
  kFine = 0,
  kWrong = 1,    // it computed wrong results; the time says nothing
  kHang = 2,     // it did not end within the limit
  kCrash = 3,    // a rank ended
  kRefused = 4,  // the library does not offer this configuration here
};
const char* OutcomeName(SampleOutcome outcome);  // "fine", "wrong", "hang", "crash", "refused"

// One measurement. Without a time (seconds is NaN) it says why there is none.
struct Sample {
  Point point;
  int round = 0;                  // which repetition of this point in its run
  double seconds = std::nan("");  // per call, of the slowest rank
  // Half of the last digit that was printed, as a share of the value: 0.32 is 1.6 % coarse. 0 where
  // the value has all its digits.
  double coarse = 0;
  int64_t iterations = 1;  // calls the time is the mean of
  int64_t wrong = -1;      // elements that were wrong; -1: nobody looked
  SampleOutcome outcome = SampleOutcome::kFine;
  std::string note;  // the error, in the library's words
  double at = 0;     // seconds since 1970
};

// Where it was measured: what would have to be equal for figures of two runs to be comparable.
struct MachineInfo {
  std::string library;          // "nccl", "rccl", "gloo", "openmpi"; "" where nobody knows
  std::string library_version;  // "2.28.9"
  std::string gpu;              // "8x NVIDIA A100-SXM4-80GB"; "" for none
  std::string driver;
  std::string topology;  // "2 nodes of 8 ranks, ..."
  std::string hosts;     // "n1,n2"
  std::string tool;      // "diapason 0.1.0", "nccl-tests 2.17.9"
  bool simulated = false;
  std::map<std::string, std::string> environment;  // the variables that matter: NCCL_*, RCCL_*, ...
  friend bool operator==(const MachineInfo&, const MachineInfo&) = default;
};

// Samples that were taken together.
struct SampleRun {
  enum class State : uint8_t { kRunning = 0, kDone = 1, kInterrupted = 2 };
  // Unique everywhere: NewRunId(), or, for imports, from the content, so that a file that is
  // imported twice is there once.
  std::string id;
  std::string source;  // "sweep", "bench", "iteration", "import"
  std::string origin;  // the command line, or the file
  double started = 0;  // seconds since 1970
  State state = State::kRunning;
  std::string plan;  // what the run set out to do, in its own words; for --resume
  MachineInfo machine;
};
std::string NewRunId();

// nccl-tests' factor between algbw and busbw for any collective a Point may have.
double BusFactorOf(const std::string& collective, int ranks);
// Bytes per second.
double BusBandwidth(const Point& point, double seconds);

}  // namespace diapason::dataset
