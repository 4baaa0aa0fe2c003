#include "report/table.h"

#include <gtest/gtest.h>

namespace diapason::report {
namespace {

TEST(TableTest, PadsByCharactersAndLeavesNoTrailingBlanks) {
  Table table({"size", "time µs", "why"});
  table.SetAlign({Table::Align::kRight, Table::Align::kRight});
  table.Add({"1KiB", "7", "row"});
  table.Add({"128KiB", "1234567", ""});
  EXPECT_EQ(table.Text(),
            "  size  time µs  why\n"
            "  1KiB        7  row\n"
            "128KiB  1234567\n");
}

TEST(TableTest, CellsCannotMoveTheCursor) {
  Table table({"a", "b"});
  table.Add({"x\x1b[31m\n", "y"});
  EXPECT_EQ(table.Text(), "a              b\nx\\x1b[31m\\x0a  y\n");
}

}  // namespace
}  // namespace diapason::report
