#include "domain/finding.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace diapason {
namespace {

TEST(FindingTest, TheWorstComesFirst) {
  std::vector<Finding> findings = {{.id = "a", .severity = Severity::kNote},
                                   {.id = "b", .severity = Severity::kError},
                                   {.id = "c", .severity = Severity::kError},
                                   {.id = "d", .severity = Severity::kFine}};
  EXPECT_EQ(Worst(findings), Severity::kError);
  EXPECT_EQ(Worst({}), Severity::kFine);
  SortBySeverity(&findings);
  std::string order;
  for (const Finding& finding : findings) order += finding.id;
  EXPECT_EQ(order, "bcad");
}

}  // namespace
}  // namespace diapason
