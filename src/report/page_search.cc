#include <algorithm>
#include <cmath>

#include "dataset/summary.h"
#include "report/page_parts.h"

namespace diapason::report {
namespace {

// The spread of two or fewer is unknown.
constexpr size_t kLeastTold = 3;

PageFigure TimeOf(const dataset::ConfigSummary& entry) {
  return {entry.seconds.size(), entry.median, entry.interval};
}

// The default and the best, if those are two.
void AddSpreads(const dataset::ConfigGroup& measured, ConfigBook* configs, PageSize* size) {
  for (const dataset::ConfigSummary& entry : measured.entries) {
    if (!entry.fine() || entry.seconds.empty()) continue;
    const int config = configs->NumberOf(entry.point);
    if (config != 0 && config != size->cells.front().config) continue;
    size->spreads.push_back(SpreadOf(config, false, entry.seconds));
  }
}

// Whether the data support a change to the fastest, and how certain that is.
void Judge(const dataset::ConfigGroup& group, PageSize* size) {
  const PageCell* const standard = size->Find(0);
  if (standard == nullptr) return;
  const PageCell& best = size->cells.front();
  size->lost = best.config == 0 ? PageFigure{best.time.samples, 1, {1, 1}}
                                : RatioOf(standard->time, best.time);
  const size_t least = std::min(best.time.samples, standard->time.samples);
  size->chosen = 0;
  if (best.config == 0 || group.TiesWithBest(*group.standard)) {
    size->certainty = Certainty::kTie;
    return;
  }
  size->certainty = least < kLeastJudged ? Certainty::kFew : Certainty::kClear;
  if (least >= kLeastTold) size->chosen = best.config;
}

}  // namespace

void AddSearch(const PagePart& part, ConfigBook* configs, GroupBook* groups, PageData* data) {
  for (const dataset::ConfigGroup& measured : dataset::Summarise(part.contents)) {
    const size_t group = groups->IndexOf(part.place, measured.context);
    PageSize size;
    size.bytes = measured.context.bytes;
    for (size_t i = 0; i < measured.entries.size(); ++i) {
      const dataset::ConfigSummary& entry = measured.entries[i];
      const int config = configs->NumberOf(entry.point);
      if (entry.failures > 0) {
        data->failures.push_back({group, size.bytes, config, dataset::OutcomeName(entry.failure),
                                  entry.failures, entry.note});
      }
      // Times that are missing, not finite or not positive cannot be drawn.
      if (!entry.fine() || !std::isfinite(entry.median) || entry.median <= 0) continue;
      size.cells.push_back({config, TimeOf(entry), measured.TiesWithBest(i), entry.failures});
    }
    if (size.cells.empty()) continue;
    Judge(measured, &size);
    AddSpreads(measured, configs, &size);
    data->groups[group].sizes.push_back(std::move(size));
  }
}

}  // namespace diapason::report
