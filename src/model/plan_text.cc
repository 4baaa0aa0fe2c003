#include "base/text.h"
#include "model/plan.h"
#include "policy/parse.h"

namespace diapason::model {

std::string PlannedRow::KnownFrom() const {
  std::string text = BasisName(basis);
  if (sizes > 0 && between.has_value()) text += ", interpolated between";
  return text;
}

std::string PlannedRow::Remark() const {
  std::string text = Format("{:.2f} x faster ", gain);
  text += sizes > 0                      ? "over " + Count(sizes, "measured size")
          : basis == Basis::kTransferred ? "as other numbers of nodes have it"
                                         : "between measured sizes";
  text += Format(", at least {:.2f} x [{:.2f}, {:.2f}], {}", least.expected, least.low, least.high,
                 BasisName(basis));
  if (samples > 0) text += ", " + Count(samples, "sample");
  if (sizes > 0 && between.has_value()) {
    text += Format("; between these sizes at least {:.2f} x [{:.2f}, {:.2f}], interpolated",
                   between->expected, between->low, between->high);
  }
  return text;
}

std::string PlannedPolicy::Text() const {
  std::vector<std::string> remarks;
  for (const PlannedRow& row : rows) remarks.push_back(row.Remark());
  if (policy.rules.size() > rows.size()) {
    remarks.emplace_back(
        "what a job that learns may try; the first row that matches decides elsewhere");
  }
  return policy::PolicyText(policy, remarks);
}

}  // namespace diapason::model
