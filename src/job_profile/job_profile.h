#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "domain/decision.h"
#include "journal/reader.h"

// What a job does with its time, from the journals of its ranks: library, communicators, calls,
// iterations, and how much of an iteration is collective time. Pure: no clock, no files, no
// threads.
namespace diapason::job_profile {

// Times in seconds, of one iteration.
struct Times {
  double total = 0;  // at least one collective was running on the GPU
  // Of it, what the following work waited for. An estimate (exposure.h), with its bounds.
  double exposed = 0;
  double exposed_low = 0;
  double exposed_high = 0;
  // Of it, waiting for ranks that came later: the time beyond that of the quickest rank.
  double waiting = 0;
  // By which hidden collectives slow the work beside them: an estimate too.
  double slowed = 0;
  double Hidden() const { return total - exposed; }
};

// Communicators with one part in the program: those that a rank has one after the other with the
// same name and shape are one role, and so are those of other ranks in the same place.
struct Role {
  Library library = Library::kNccl;
  int library_version = 0;  // 0: unknown
  Shape shape;
  std::string name;          // the program's; may be empty
  int place = 0;             // among roles of this shape and name, by the order of creation
  size_t communicators = 0;  // different ones, over the whole job
  size_t ended = 0;          // of these, before their process ended
  uint64_t calls = 0;        // of all ranks

  // "dp, 4 ranks"; "4 ranks on 2 nodes, the 2nd".
  std::string Text() const;
};

// Calls of one role and collective in a band of sizes that ends at a power of two.
struct CallClass {
  size_t role = 0;
  uint8_t collective = 0;  // or journal::kNamelessCollective
  int band = 0;
  uint64_t least_bytes = 0;
  uint64_t most_bytes = 0;
  uint64_t calls = 0;              // of all ranks, start-up included
  double calls_per_iteration = 0;  // mean over ranks
  Times times;                     // per iteration, mean over ranks
  // Calls, of all ranks, whose configuration cannot be tried in place, by the first reason that
  // applies.
  uint64_t captured = 0;
  uint64_t bypassed = 0;
  uint64_t in_groups = 0;   // library 2.29 and later
  uint64_t broadcasts = 0;  // library 2.29 and later
  uint64_t Untried() const { return captured + bypassed + in_groups + broadcasts; }
};

// How iterations were found.
enum class Source {
  kNone,   // there are none
  kSteps,  // the program called diapason_step()
  kOrder,  // the order of the calls repeats
  // There are none, but the calls are all alike: so many of them are taken together. Good for
  // comparing times only.
  kCalls,
};
constexpr size_t kCallsTogether = 32;

struct RankProfile {
  std::string label;  // "rank 3", or the journal's name
  int rank = -1;
  uint64_t calls = 0;
  uint64_t startup_calls = 0;  // before the first iteration
  uint64_t other_calls = 0;    // between and after iterations
  Source source = Source::kNone;
  bool gpu_clock = false;          // iterations were timed by the GPU's clock, else by the host's
  size_t iterations = 0;           // that were timed
  size_t after_capture = 0;        // of these: those that began after the last capture
  double calls_per_iteration = 0;  // the median
  size_t parts = 1;                // how often a part of it repeats: layers, gradients
  double iteration = 0;            // seconds: the median,
  double iteration_low = 0;        // and quantiles of 10 and 90 %
  double iteration_high = 0;
  size_t longer = 0;         // iterations that took over a quarter longer than the median,
  double longer_length = 0;  // and their median
  Times times;
  // Of the collective time: what follows waited for the host to launch it, not for the collective.
  double hidden_by_host = 0;
  uint64_t timed_calls = 0;
  bool complete = false;  // the journal was closed, and nothing is missing in it
};

// "28.1 ms".
std::string Milliseconds(double seconds);

struct JobProfile;
// "96 % allreduce of 259 to 1028 KiB": by time, or by calls if nothing was timed.
std::string LargestPart(const JobProfile& profile);

struct JobProfile {
  std::vector<Role> roles;
  std::vector<CallClass> classes;  // by time per iteration, then by calls; descending
  std::vector<RankProfile> ranks;  // with calls
  size_t missing_ranks = 0;        // of the largest communicator: they have no journal
  Source source = Source::kNone;   // of most ranks
  bool has_times = false;          // GPU times of calls are there
  size_t iterations = 0;           // timed, of the rank with the most
  double iteration = 0;            // the median rank's; 0: there are no iterations
  double iteration_low = 0;
  double iteration_high = 0;
  std::string slowest_rank;
  double slowest_iteration = 0;
  Times times;  // mean over the ranks with iterations
  double hidden_by_host = 0;
  bool captures = false;       // calls were captured in graphs
  size_t after_capture = 0;    // of `iterations`: those that began after the last capture
  double untried_seconds = 0;  // per iteration, of calls that were timed
  uint64_t untried_calls = 0;
  uint64_t calls = 0;
  uint64_t untimed_calls = 0;
  double untimed_per_iteration = 0;  // calls, mean over ranks: `times` lacks their time
  uint64_t dropped = 0;              // records, by the writers
  size_t bad_lines = 0;
  std::vector<std::string> notes;  // what limits the figures, and what to do about it

  // "an iteration takes 28.1 ms; collectives 9.4 ms of it, 7.0 ms exposed (estimate); ...".
  std::string Headline() const;
};

// JobProfile::notes. `several_devices`: a process has several ranks. `runs`: the job still runs, so
// that no journal can be complete.
std::vector<std::string> NotesOf(const JobProfile& profile, bool several_devices,
                                 bool runs = false);

// Calls of which every iteration has the same number: one collective in one band of sizes, in
// communicators of one shape.
struct CountedCalls {
  Library library = Library::kNccl;
  uint8_t collective = 0;
  int band = 0;
  Shape shape;
  size_t per_iteration = 0;
};

class JobMaker;
struct Job;

// Of a job in which the library's default and a policy took turns: the iterations of each.
struct SidedProfiles {
  JobProfile by_default;
  JobProfile by_policy;
};

// Makes the profile of one job from the journals of its ranks, one after the other: only their
// calls are kept.
class ProfileMaker {
 public:
  ProfileMaker();
  ~ProfileMaker();
  ProfileMaker(const ProfileMaker&) = delete;
  ProfileMaker& operator=(const ProfileMaker&) = delete;

  // `name` is that of the file.
  void Add(const std::string& name, const journal::JournalContents& contents);
  // One of the two is called, once. An error if there was no call of a collective.
  // `runs`: the job still runs.
  Result<JobProfile> Finish(bool runs = false);
  // Both profiles have only iterations whose calls all ran in turns of one of the two, without
  // those next to a change of turns, and only the calls of these iterations. An error if one of the
  // two has no such iteration.
  // `counted`: calls whose number per iteration is known; with per_iteration 0, iterations are
  // looked for.
  Result<SidedProfiles> FinishSides(const CountedCalls& counted = {});

 private:
  Result<Job> FinishJob();

  std::unique_ptr<JobMaker> job_;
  uint64_t dropped_ = 0;
  size_t bad_lines_ = 0;
};

}  // namespace diapason::job_profile
