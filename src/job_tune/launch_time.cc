#include "job_tune/launch_time.h"

#include <algorithm>

#include "base/stats.h"
#include "base/text.h"
#include "job_profile/iterations.h"
#include "job_profile/timeline.h"

namespace diapason::job_tune {
namespace {

using job_profile::RankIterations;
using job_profile::Source;
using job_profile::Timeline;

constexpr size_t kLeastTimed = 3;
constexpr size_t kMostReads = 8;  // of 64 MiB each
constexpr size_t kFirstBytes = size_t{4} << 20;

// The lengths of a rank's iterations after the last capture.
std::vector<double> LengthsOf(const job_profile::Job& job, const Timeline& timeline,
                              const LaunchTiming& timing) {
  const RankIterations found =
      timing.counted.per_iteration > 0
          ? job_profile::CountIterations(timeline, job.roles, timing.counted)
          : job_profile::FindIterations(timeline);
  std::vector<double> lengths;
  // Iterations that were found in another way are not the same ones.
  if (found.source != timing.source) return lengths;
  for (const job_profile::RankIteration& one : found.timed) {
    if (one.begin > timeline.last_capture) lengths.push_back(one.length);
  }
  return lengths;
}

}  // namespace

LaunchTiming TimingOf(const job_profile::JobProfile& look,
                      const std::vector<TunedContext>& contexts) {
  LaunchTiming timing;
  timing.source = look.source;
  timing.whole = look.iteration <= 0 || (look.captures && look.after_capture == 0);
  if (timing.whole || look.source == Source::kSteps) return timing;
  // By number: pauses, where calls are all alike, may be found in one launch and not in another.
  for (const TunedContext& one : contexts) {
    if (one.unseen) continue;
    timing.counted = CountedIn(one);
    if (timing.counted.per_iteration == 0) continue;
    timing.source = Source::kOrder;
    break;
  }
  return timing;
}

LaunchTime IterationTimer::Read(const std::vector<std::string>& journals) {
  for (const std::string& path : journals) {
    const bool known = std::any_of(windows_.begin(), windows_.end(),
                                   [&](const auto& one) { return one.path() == path; });
    if (!known) windows_.emplace_back(path);
  }
  job_profile::JobMaker maker;
  for (JournalWindow& window : windows_) {
    for (size_t i = 0; i < kMostReads; ++i) {
      const uint64_t before = window.offset();
      if (!window.Read().ok() || window.offset() == before) break;
    }
    const Result<journal::JournalContents> contents = window.Contents();
    if (contents.ok()) maker.Add(window.path(), contents.value());
  }
  const job_profile::Job job = maker.Finish();
  LaunchTime time;
  std::vector<double> ranks;
  for (const Timeline& timeline : job.ranks) {
    std::vector<double> lengths = LengthsOf(job, timeline, timing_);
    time.iterations = std::max(time.iterations, lengths.size());
    if (lengths.size() >= kLeastTimed) ranks.push_back(Median(std::move(lengths)));
  }
  if (ranks.empty()) {
    time.trouble = Format(
        "it had {} of the kind that the first launch has shown, and {} are needed: let the command "
        "run longer",
        Count(time.iterations, "iteration"), kLeastTimed);
    return time;
  }
  time.seconds = Median(std::move(ranks));
  return time;
}

LaunchTime WholeLaunchTime(const std::vector<std::string>& journals, uint64_t end_ns) {
  uint64_t first = UINT64_MAX;
  for (const std::string& path : journals) {
    const Result<journal::JournalContents> contents = journal::ReadJournalHead(path, kFirstBytes);
    if (!contents.ok()) continue;
    for (const journal::JournalRecord& record : contents.value().records) {
      first = std::min(first, record.time_ns);
    }
  }
  LaunchTime time;
  if (first >= end_ns) {
    time.trouble = first == UINT64_MAX ? "it made no call"
                                       : "its first call is later than its end: the clocks of the "
                                         "hosts differ";
    return time;
  }
  time.seconds = static_cast<double>(end_ns - first) * 1e-9;
  return time;
}

}  // namespace diapason::job_tune
