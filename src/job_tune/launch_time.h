#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job_profile/counted.h"
#include "job_profile/job_profile.h"
#include "job_tune/journal_window.h"
#include "job_tune/result.h"

// How long a launch takes, as one figure that can be compared with that of another launch.
namespace diapason::job_tune {

struct LaunchTiming {
  // From the first call to the end of the command: nothing in the journals repeats.
  bool whole = false;
  // Else the median length of iterations, which are found in this way in all launches:
  job_profile::Source source = job_profile::Source::kNone;
  // With per_iteration > 0: by these calls, whose number per iteration the look has found.
  job_profile::CountedCalls counted;
};
// As the look has found them. `whole` if it has found no iterations after the last capture.
LaunchTiming TimingOf(const job_profile::JobProfile& look,
                      const std::vector<TunedContext>& contexts);

struct LaunchTime {
  double seconds = 0;     // 0: not known, and `trouble` says why
  size_t iterations = 0;  // of the rank with most; 0 for whole launches
  std::string trouble;
};

// Times the iterations of a launch while it runs and at its end: of those after the last capture
// (what comes before is start-up and warm-up) the median of each rank, and of the ranks the median.
// Not thread-safe.
class IterationTimer {
 public:
  explicit IterationTimer(const LaunchTiming& timing) : timing_(timing) {}
  // Reads what was added to these journals. What cannot be read is left out.
  LaunchTime Read(const std::vector<std::string>& journals);

 private:
  const LaunchTiming timing_;
  std::vector<JournalWindow> windows_;
};

// Of a launch that has ended at `end_ns`, since 1970: from the first record of its journals on.
LaunchTime WholeLaunchTime(const std::vector<std::string>& journals, uint64_t end_ns);

}  // namespace diapason::job_tune
