#include <algorithm>
#include <cmath>

#include "dataset/summary.h"
#include "report/page_parts.h"

namespace diapason::report {
namespace {

// Two or fewer may lie anywhere.
constexpr size_t kLeastTold = 3;

Figure TimeOf(const dataset::Contender& contender) {
  return {contender.seconds.size(), contender.median, contender.interval};
}

// Whether the fastest is a change that the data support, and how sure that is.
void Judge(const dataset::Contest& contest, PageSize* size) {
  const PageCell* const standard = size->Find(0);
  if (standard == nullptr) return;
  const PageCell& best = size->cells.front();
  size->lost =
      best.config == 0 ? Figure{best.time.samples, 1, {1, 1}} : RatioOf(standard->time, best.time);
  const size_t least = std::min(best.time.samples, standard->time.samples);
  size->chosen = 0;
  if (best.config == 0 || contest.TiesWithBest(*contest.standard)) {
    size->certainty = Certainty::kTie;
    return;
  }
  size->certainty = least < kLeastJudged ? Certainty::kFew : Certainty::kClear;
  if (least >= kLeastTold) size->chosen = best.config;
}

}  // namespace

void AddSearch(const PagePart& part, ConfigBook* configs, GroupBook* groups, PageData* data) {
  for (const dataset::Contest& contest : dataset::Summarise(part.contents)) {
    const size_t group = groups->IndexOf(part.place, contest.context);
    PageSize size;
    size.bytes = contest.context.bytes;
    for (size_t i = 0; i < contest.contenders.size(); ++i) {
      const dataset::Contender& contender = contest.contenders[i];
      const int config = configs->NumberOf(contender.point);
      if (contender.failures > 0) {
        data->failures.push_back({group, size.bytes, config,
                                  dataset::OutcomeName(contender.failure), contender.failures,
                                  contender.note});
      }
      // A time that is no number, or none at all, has no place on an axis.
      if (!contender.fine() || !std::isfinite(contender.median) || contender.median <= 0) continue;
      size.cells.push_back(
          {config, TimeOf(contender), contest.TiesWithBest(i), contender.failures});
    }
    if (size.cells.empty()) continue;
    Judge(contest, &size);
    data->groups[group].sizes.push_back(std::move(size));
  }
}

}  // namespace diapason::report
