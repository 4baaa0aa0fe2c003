#include "base/text.h"
#include "model/plan.h"
#include "policy/parse.h"

namespace diapason::model {

std::string PlannedRow::Remark() const {
  std::string text = Format("%.2f x faster over %s", gain, Count(sizes, "size").c_str());
  text += Format(", at least %.2f x [%.2f, %.2f], %s", least.expected, least.low, least.high,
                 BasisName(basis));
  if (samples > 0) text += ", " + Count(samples, "sample");
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
