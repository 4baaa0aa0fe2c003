#include "measure/marked_measurer.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <set>

#include "base/text.h"

namespace diapason::measure {
namespace {

constexpr int kMostDeaths = 2;

dataset::Sample Blame(const dataset::Unfinished& unfinished) {
  dataset::Sample sample;
  sample.point = unfinished.point;
  sample.outcome = dataset::SampleOutcome::kCrash;
  sample.note = "the measuring process ended while this was measured";
  if (unfinished.deaths > 1) sample.note += Format(", {} times in a row", unfinished.deaths);
  sample.iterations = 0;
  sample.at = static_cast<double>(std::time(nullptr));
  return sample;
}

std::set<dataset::Point> PointsWithATime(const dataset::StoreContents& contents,
                                         const std::vector<std::string>& runs) {
  std::set<dataset::Point> points;
  for (const dataset::StoredSample& record : contents.records) {
    const std::string& run = contents.runs[record.run].id;
    if (record.sample.outcome == dataset::SampleOutcome::kFine &&
        std::find(runs.begin(), runs.end(), run) != runs.end()) {
      points.insert(record.sample.point);
    }
  }
  return points;
}

}  // namespace

Result<Measurement> MarkedMeasurer::Measure(const Trial& trial) {
  const Status begun = recorder_->Begin(PointOf(trial, subject()));
  // Not as it is: kNotFound means something else here.
  if (!begun.ok()) return IoError(begun.message());
  return measurer_->Measure(trial);
}

Result<std::vector<dataset::Sample>> SettleUnfinished(dataset::SampleStore* store,
                                                      const std::vector<std::string>& runs,
                                                      dataset::StoreContents* contents) {
  std::vector<std::pair<std::string, dataset::Unfinished>> found;
  std::map<dataset::Point, int> deaths;
  for (const std::string& run : runs) {
    ASSIGN_OR_RETURN(const std::vector<dataset::Unfinished> unfinished, store->TakeUnfinished(run));
    for (const dataset::Unfinished& one : unfinished) {
      found.emplace_back(run, one);
      deaths[one.point] += one.deaths;
    }
  }
  const std::set<dataset::Point> works = PointsWithATime(*contents, runs);
  std::vector<dataset::Sample> blamed;
  for (auto& [run, one] : found) {
    one.deaths = deaths[one.point];
    if (works.contains(one.point) && one.deaths < kMostDeaths) continue;
    const dataset::Sample sample = Blame(one);
    RETURN_IF_ERROR(store->Settle(run, {&sample, 1}));
    const auto of_run = std::find_if(contents->runs.begin(), contents->runs.end(),
                                     [&run = run](const auto& known) { return known.id == run; });
    if (of_run != contents->runs.end()) {
      contents->records.push_back({static_cast<size_t>(of_run - contents->runs.begin()), sample});
    }
    blamed.push_back(sample);
  }
  return blamed;
}

}  // namespace diapason::measure
