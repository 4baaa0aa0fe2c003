#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "job_profile/job_profile.h"
#include "journal/match.h"

namespace diapason::job_profile {

// While the library's default and a policy take turns: which of the two a call ran, if a row of the
// policy matches it.
enum class CallTurn : uint8_t { kNone, kDefault, kPolicy };

// One call on one rank.
struct Call {
  size_t role = 0;
  uint64_t group = 0;  // the communicator, alike on all ranks
  uint64_t sequence = 0;
  uint8_t collective = 0;
  uint64_t bytes = 0;
  uint64_t host_ns = 0;   // when it was asked about or enqueued, on the host's clock
  uint64_t start_ns = 0;  // its kernel, on the GPU's clock; both 0: not timed
  uint64_t stop_ns = 0;
  double quickest =
      0;  // its time on the rank where it took least, seconds; 0: only one rank has it
  bool captured = false;
  bool bypassed = false;
  bool grouped = false;  // with other calls of its communicator
  CallTurn turn = CallTurn::kNone;
  bool decided = false;  // its decision is known, and so is:
  Config asked;          // what the library was asked for; default: nothing
  Config ran;            // as the library reported it; default: not known

  bool timed() const { return stop_ns > start_ns; }
  double seconds() const { return static_cast<double>(stop_ns - start_ns) * 1e-9; }
};

// The calls of one rank, in the order in which they were made.
struct Timeline {
  std::string label;
  std::string process;  // "host, process 123"
  int rank = -1;
  std::vector<Call> calls;
  std::vector<uint64_t> steps;  // host clock, ascending
  uint64_t last_capture = 0;    // host clock: the last question about a captured call; 0: none
  bool complete = false;
};

struct Job {
  std::vector<Role> roles;
  std::vector<Timeline> ranks;
  size_t missing_ranks = 0;
  bool several_devices = false;  // a process has several ranks
};

// Makes a job of its journals. Keeps nothing of them but the calls.
class JobMaker {
 public:
  void Add(const std::string& name, const journal::JournalContents& contents);
  // Called once.
  Job Finish();

 private:
  size_t RoleOf(size_t timeline, const journal::JournalComm& comm);
  void CountMissing();

  Job job_;
  journal::Matcher matcher_;
  std::map<std::tuple<Library, int, int64_t, int64_t, std::string, int>, size_t> roles_;
  // When the communicator of each place has ended; 0: it has not.
  std::map<std::tuple<size_t, Library, int64_t, int64_t, std::string>, std::vector<uint64_t>>
      places_;
  std::vector<std::set<uint64_t>> groups_;  // by role
  std::vector<std::set<uint64_t>> ended_;
};

}  // namespace diapason::job_profile
