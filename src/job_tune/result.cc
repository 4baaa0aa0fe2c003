#include "job_tune/result.h"

#include "base/text.h"
#include "base/units.h"
#include "domain/schedule.h"

namespace diapason::job_tune {

std::string JobContext::Text() const {
  return Format("{} up to {}, {} on {}", CollectiveName(collective), FormatBytes(BandLast(band)),
                Count(static_cast<size_t>(shape.ranks), "rank"),
                Count(static_cast<size_t>(shape.nodes), "node"));
}

policy::Rule RowOf(const JobContext& context, const Config& config) {
  policy::Rule rule;
  rule.collective = context.collective;
  rule.min_bytes = BandFirst(context.band);
  rule.max_bytes = BandLast(context.band);
  rule.config = config;
  rule.nodes = context.shape.nodes;
  rule.ranks = context.shape.ranks;
  return rule;
}

}  // namespace diapason::job_tune
