#include "report/table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "report/row_table.h"
#include "report/table_layout.h"

namespace diapason::report {
namespace {

using Align = Table::Align;

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

// A table as `tune` prints it.
Table Tuned() {
  Table table({"collective", "size", "library default us [95 %]", "tuned us [95 %]", "gain [95 %]",
               "configuration"});
  table.SetAlign({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  table.SetImportance({6, 9, 1, 3, 8, 7});
  table.Add({"allreduce", "1KiB", "1917.7 [1467.0, 3728.5]", "215.4 [212.7, 220.8]",
             "8.31 x [6.67, 18.65]", "ring/blocking"});
  table.Add({"allreduce", "64KiB", "1987.0 [1617.1, 4189.7]", "417.8 [364.0, 435.7]",
             "4.54 x [3.38, 9.81]", "halving_doubling/blocking"});
  return table;
}

size_t Widest(const std::string& text) {
  size_t widest = 0;
  for (const std::string_view line : Split(text, '\n')) widest = std::max(widest, TextWidth(line));
  return widest;
}

TEST(TableTest, FitsEveryWidth) {
  const Table table = Tuned();
  for (size_t columns = 20; columns < 140; ++columns) {
    const std::string text = table.Text({.columns = columns});
    EXPECT_LE(Widest(text), columns) << text;
    // The least important values go; those that are there are whole.
    EXPECT_EQ(text.find("4.54 x") == std::string::npos, text.find("'gain'") != std::string::npos)
        << text;
  }
  EXPECT_EQ(table.Text({.columns = 200}), table.Text({}));
}

TEST(TableTest, LeavesOutIntervalsBeforeColumns) {
  const Table table = Tuned();
  EXPECT_EQ(table.Text({.columns = 80}),
            "                                       tuned\n"
            "collective   size  library default us     us    gain  configuration\n"
            "allreduce    1KiB              1917.7  215.4  8.31 x  ring/blocking\n"
            "allreduce   64KiB              1987.0  417.8  4.54 x  halving_doubling/blocking\n"
            "(no room for intervals in 80 columns)\n");
  EXPECT_EQ(table.Text({.columns = 50}),
            "                   tuned\n"
            "collective   size     us    gain  configuration\n"
            "allreduce    1KiB  215.4  8.31 x  ring/blocking\n"
            "allreduce   64KiB  417.8  4.54 x  halving_doubling\n"
            "                                  /blocking\n"
            "(no room for intervals, 'library default us' in 50\n"
            "columns)\n");
}

TEST(TableTest, WrapsTextAndKeepsAllOfIt) {
  Table table({"name", "why"});
  table.Add({"a", "the quick brown fox jumps over the lazy dog 0123456789012345678901234567890"});
  const std::string text = table.Text({.columns = 30});
  EXPECT_LE(Widest(text), 30U);
  std::string joined = text;
  std::erase_if(joined, [](char c) { return c == ' ' || c == '\n'; });
  EXPECT_EQ(joined, "namewhyathequickbrownfoxjumpsoverthelazydog0123456789012345678901234567890");
}

TEST(TableTest, ColoursOnlyWhereAskedFor) {
  Table table({"size", "gain"});
  table.Add({"1KiB", "1.20 x"});
  table.SetTone(1, ToneOfGain(1.2));
  EXPECT_EQ(table.Text({}), "size  gain\n1KiB  1.20 x\n");
  EXPECT_EQ(table.Text({.colours = true}), "size  gain\n1KiB  \033[32m1.20 x\033[0m\n");
  EXPECT_EQ(ToneOfGain(1.004), Table::Tone::kPlain);
  EXPECT_EQ(ToneOfGain(0.99), Table::Tone::kBad);
  EXPECT_EQ(ToneOfGain(0), Table::Tone::kPlain);
}

TEST(TableTest, MarkdownAndCsvAreCompleteAndCanBeFound) {
  Table table({"size", "why, or not"});
  table.SetAlign({Align::kRight});
  table.Add({"1KiB", "a|b \"c\", d"});
  const std::string csv = table.Text({.format = TableFormat::kCsv, .columns = 10});
  const std::string markdown = table.Text({.format = TableFormat::kMarkdown, .columns = 10});
  const std::vector<std::string> found = TablesOf("before\n" + csv + "between" + markdown + "\n");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], "size,\"why, or not\"\n1KiB,\"a|b \"\"c\"\", d\"\n");
  EXPECT_EQ(found[1], "| size | why, or not |\n|---:|---|\n| 1KiB | a\\|b \"c\", d |\n");
  EXPECT_TRUE(TablesOf("no table").empty());
}

TEST(TableTest, IntervalsAreTakenOffBehindAValueOnly) {
  EXPECT_EQ(WithoutInterval("12.1 [11.9, 12.4]"), "12.1");
  EXPECT_EQ(WithoutInterval("12.1 (11.9 to 12.4)"), "12.1");
  EXPECT_EQ(WithoutInterval("[95 %] or (range)"), "[95 %] or (range)");
  EXPECT_EQ(WithoutInterval("12.1"), "12.1");
}

TEST(TableTest, IntervalsOfFiguresAreLeftOutInAnyColumn) {
  Table table({"calls", "gain"});
  table.Add({"allreduce (4 ranks)", "1.35 x [1.33, 1.37]"});
  EXPECT_EQ(table.Text({.columns = 30}),
            "calls                gain\n"
            "allreduce (4 ranks)  1.35 x\n"
            "(no room for intervals in 30\n"
            "columns)\n");
}

TEST(RowTableTest, LeavesOutTheLeastImportantColumns) {
  const std::vector<RowTable::Column> columns = {
      {"size", 6, true, 9}, {"count", 6, true, 1}, {"time", 6, true, 5}};
  const RowTable whole(columns, 0);
  EXPECT_EQ(whole.Titles(), "  size   count    time\n");
  EXPECT_EQ(whole.LeftOut(), "");
  const RowTable narrow(columns, 16);
  EXPECT_EQ(narrow.Line({"1", "2", "3"}), "     1       3\n");
  EXPECT_EQ(narrow.LeftOut(), "no room for 1 of 3 columns");
  EXPECT_EQ(narrow.WidthOf(1, 3), 6U);
  EXPECT_EQ(RowTable(columns, 3).Titles(), "  size\n");
}

}  // namespace
}  // namespace diapason::report
