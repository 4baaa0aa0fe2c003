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

}  // namespace diapason::job_tune
