#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "domain/mpi_calls.h"
#include "job_profile/job_profile.h"
#include "mpi_record/reader.h"

// What an MPI program does with its time, from the recordings of its ranks: iterations, the share
// of collectives, and which of them Open MPI's rules can change. Pure: no clock, no files, no
// threads.
namespace diapason::mpi_profile {

// Iterations with less than this share of a program's time do not stand for it.
inline constexpr double kMostlyIterations = 0.5;

// Why rules cannot change a call.
enum class Fixed : uint8_t {
  kNo,              // they can, and diapason searches its algorithms
  kNotSearched,     // they can; diapason does not search its algorithms
  kNonBlocking,     // they are for blocking calls
  kNoRules,         // Open MPI has none for it: neighbourhoods, some v-variants
  kInter,           // an intercommunicator
  kNotCommutative,  // a reduction by an operation for which rules can be wrong
  kAlone,           // a communicator of one rank, or no data
  kNotOpenMpi,      // another MPI library
};
// "non-blocking calls": what the calls are that cannot be changed for this reason.
std::string_view FixedText(Fixed fixed);

// Calls of one operation and size on communicators of one size.
struct MpiCallClass {
  MpiCall call = MpiCall::kBarrier;
  uint64_t bytes = 0;
  uint32_t ranks = 0;  // of the communicator
  Fixed fixed = Fixed::kNo;
  uint64_t calls = 0;   // of all ranks
  double seconds = 0;   // inside them, mean over the ranks of the job
  double median = 0;    // of one call, over all ranks: a busy machine changes it least
  double quickest = 0;  // of these, those of the rank that waited least for the others
  std::map<std::string, uint64_t> sites;  // calls by call site, where they are known
};

struct MpiProfile {
  std::string library;  // "Open MPI v4.1.4, ..."
  std::string program;
  bool open_mpi = false;
  size_t ranks = 0;                   // recordings
  size_t missing = 0;                 // ranks of MPI_COMM_WORLD without a recording
  double program_seconds = 0;         // MPI_Init to MPI_Finalize, mean over ranks
  double collective_seconds = 0;      // inside collectives, mean over ranks; all calls
  double recorded_seconds = 0;        // of these, inside calls that the recordings have one by one
  std::vector<MpiCallClass> classes;  // by time, descending
  job_profile::JobProfile job;        // iterations and communicators
  std::vector<std::string> notes;     // what limits the figures

  double CollectiveShare() const {
    return program_seconds > 0 ? collective_seconds / program_seconds : 0;
  }
  // How much of the program's time its iterations are; at most 1.
  double IterationShare() const;
  // Of the recorded time, the share of calls that are not fixed.
  double ChangeableShare() const;
  // "an iteration takes 12.1 ms; collectives 5.2 ms of it (43 %), 0.3 ms of that waiting for slower
  // ranks; 96 % allreduce of 64 KiB".
  std::string Headline() const;
  // "collectives take 38 % of the program's time (4.1 s of 10.8 s)".
  std::string ShareText() const;
  // "Open MPI's rules can change 96 % of that; not: 4 % non-blocking calls".
  std::string RulesText() const;
};

class ProfileMaker {
 public:
  // `name` is that of the file.
  void Add(const std::string& name, const mpi_record::Recording& recording);
  // Called once. An error if there was no call of a collective.
  Result<MpiProfile> Finish();

 private:
  void AddCalls(const mpi_record::Recording& recording);

  using Key = std::tuple<uint8_t, uint64_t, uint32_t, Fixed>;
  MpiProfile profile_;
  job_profile::ProfileMaker job_;
  std::map<Key, MpiCallClass> classes_;
  std::map<Key, double> least_;  // seconds of the rank with the least
  std::map<Key, size_t> on_;     // ranks that have it
  std::map<Key, std::vector<float>> durations_;
  size_t world_ = 0;
  uint64_t dropped_ = 0;
  uint64_t over_limit_ = 0;
  size_t cut_ = 0;
};

// Reads and adds up the recordings of a program. A file that cannot be read is in the notes, unless
// it is the only one.
Result<MpiProfile> ReadProfile(const std::vector<std::string>& files);

}  // namespace diapason::mpi_profile
