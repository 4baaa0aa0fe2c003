#include "base/text.h"
#include "job_tune/metric.h"

namespace diapason::job_tune {

std::string MetricJudgement::Text() const {
  switch (verdict) {
    case Verdict::kNotAsked:
      return "";
    case Verdict::kUnchanged:
      return Format("the metric is {:.6g} by default and {:.6g} tuned: unchanged, within {:.3g} %",
                    by_default, tuned, 100 * allowed);
    case Verdict::kChanged:
      return Format(
          "the metric is {:.6g} by default and {:.6g} tuned: a change of {:.3g} %, and "
          "{:.3g} % are allowed",
          by_default, tuned, 100 * change, 100 * allowed);
    case Verdict::kNotPrinted:
      return "the metric was not printed: no line of the output matches the pattern";
    case Verdict::kTooFew:
      break;
  }
  return "too few launches printed the metric to compare it";
}

}  // namespace diapason::job_tune
