#pragma once

#include <string>
#include <vector>

#include "base/settings.h"
#include "measure/policy_check.h"
#include "policy/policy.h"
#include "report/row_table.h"
#include "report/table.h"

namespace diapason::cli {

// A call, and the row of the policy that decides it; line 0: none does.
struct DecidedCall {
  measure::Trial trial;
  int line = 0;
};

// The calls to compare, from the command line and the policy.
struct PolicyPlan {
  policy::Policy policy;
  size_t rows_here = 0;  // rows that can match these nodes and ranks
  size_t rows_skipped = 0;
  std::vector<DecidedCall> calls;
  bool several_kinds = false;  // more than one type or reduction
};

// The table of `bench --policy`, printed row by row as results arrive: the column widths are known
// from the plan, which must outlive this object.
class PolicyLines {
 public:
  PolicyLines(const PolicyPlan& plan, const measure::Subject& subject);
  // The same rows as a whole table, for --format.
  report::Table Whole(const std::vector<measure::PolicyCheck>& checks) const;
  std::string Head(const std::string& file) const;
  std::string Row(const measure::PolicyCheck& check) const;

 private:
  std::vector<std::string> Cells(const measure::PolicyCheck& check) const;

  const PolicyPlan& plan_;
  const measure::Subject& subject_;
  report::RowTable columns_;
};
// The summary of all rows, and the reasons of failures.
std::string PolicyTail(const PolicyPlan& plan, const measure::Subject& subject,
                       const std::vector<measure::PolicyCheck>& checks);

// The same as JSON, with every round. `checks` belong to the first calls of the plan.
std::string PolicyJson(const std::string& file, const PolicyPlan& plan,
                       const measure::Subject& subject,
                       const std::vector<measure::PolicyCheck>& checks);

}  // namespace diapason::cli
