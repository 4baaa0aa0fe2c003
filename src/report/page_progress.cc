#include <algorithm>
#include <cmath>
#include <map>

#include "base/stats.h"
#include "base/text.h"
#include "dataset/summary.h"
#include "report/page_parts.h"

namespace diapason::report {
namespace {

constexpr size_t kMostSteps = 200;

// One size: what its configurations turned out to take, and the best of those sampled so far.
struct SearchedSize {
  double standard = 0;
  double best = 0;  // 0: nothing was sampled yet
  std::map<dataset::Point, double> medians;

  double Gain() const { return best > 0 ? std::max(1.0, standard / best) : 1; }
};

struct SearchedGroup {
  std::map<uint64_t, SearchedSize> sizes;
  double first = 0;
  size_t samples = 0;
  double last = 0;
  std::vector<PageProgress> steps;

  double Gain() const {
    double sum = 0;
    for (const auto& [bytes, size] : sizes) sum += std::log(size.Gain());
    return std::exp(sum / static_cast<double>(sizes.size()));
  }
};

void Take(const dataset::Sample& sample, SearchedGroup* group) {
  const auto size = group->sizes.find(sample.point.bytes);
  if (size == group->sizes.end()) return;
  if (group->samples == 0) group->first = sample.at;
  ++group->samples;
  group->last = sample.at - group->first;
  const auto median = size->second.medians.find(sample.point);
  if (median == size->second.medians.end()) return;
  if (size->second.best > 0 && size->second.best <= median->second) return;
  size->second.best = median->second;
  const double gain = group->Gain();
  // Smaller steps cannot be seen.
  if (!group->steps.empty() && gain < group->steps.back().gain * 1.001) return;
  if (group->steps.size() >= kMostSteps) group->steps.pop_back();
  group->steps.push_back({group->last, group->samples, gain});
}

}  // namespace

PageSpread SpreadOf(int config, bool verified, const std::vector<double>& seconds) {
  PageSpread spread{config, verified, seconds.size(), {}};
  for (const double level : kSpreadLevels) spread.quantiles.push_back(Quantile(seconds, level));
  return spread;
}

void AddProgress(const PagePart& part, GroupBook* groups, PageData* data) {
  std::map<size_t, SearchedGroup> searched;
  for (const dataset::ConfigGroup& measured : dataset::Summarise(part.contents)) {
    if (!measured.standard || !measured.entries[*measured.standard].fine()) continue;
    SearchedGroup& group = searched[groups->IndexOf(part.place, measured.context)];
    SearchedSize& size = group.sizes[measured.context.bytes];
    size.standard = measured.entries[*measured.standard].median;
    for (const dataset::ConfigSummary& entry : measured.entries) {
      if (entry.fine() && entry.median > 0) size.medians[entry.point] = entry.median;
    }
  }
  std::vector<const dataset::Sample*> samples;
  for (const dataset::StoredSample& record : part.contents.records) {
    if (record.sample.at > 0) samples.push_back(&record.sample);
  }
  std::stable_sort(
      samples.begin(), samples.end(),
      [](const dataset::Sample* a, const dataset::Sample* b) { return a->at < b->at; });
  for (const dataset::Sample* sample : samples) {
    const auto group = searched.find(groups->IndexOf(part.place, sample->point));
    if (group != searched.end()) Take(*sample, &group->second);
  }
  for (auto& [index, group] : searched) {
    if (group.steps.size() < 2) continue;
    group.steps.push_back({group.last, group.samples, group.steps.back().gain});
    data->groups[index].progress = std::move(group.steps);
  }
}

PageUse UseOf(const std::vector<PageInput::NamedPolicy>& policies, bool simulated) {
  PageUse use;
  if (policies.empty()) return use;
  const PageInput::NamedPolicy& first = policies.front();
  use.policy = first.path.empty() ? first.name : first.path;
  if (policies.size() > 1) use.remark = "The first of several policies. ";
  if (first.policy.rules.empty()) {
    use.remark += "The policy has no rows: the library makes all choices.";
    return use;
  }
  if (simulated) {
    use.remark += "The policy is for the simulated cluster and does not apply to a real one.";
    return use;
  }
  const std::string word = ShellWord(use.policy);
  switch (first.policy.library) {
    case Library::kNccl:
    case Library::kRccl:
      use.lines = {"diapason run --policy " + word + " -- COMMAND"};
      use.remark += "COMMAND is the command that starts the job, with its launcher.";
      break;
    case Library::kOpenMpi:
      use.lines = {"diapason run --policy " + word + " -- mpirun COMMAND"};
      use.remark += "The policy reaches the program as a rules file of Open MPI.";
      break;
    case Library::kGloo:
      use.lines = {"options.policy = \"" + use.policy + "\";"};
      use.remark += "Gloo has no plugin interface: C++ programs use the policy through comm.h.";
      break;
  }
  return use;
}

}  // namespace diapason::report
