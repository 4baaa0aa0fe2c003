#include "dataset/words.h"

#include <gtest/gtest.h>

#include "dataset/csv.h"
#include "dataset/summary.h"

namespace diapason::dataset {
namespace {

TEST(WordsTest, CollectivesHoweverWritten) {
  EXPECT_EQ(ParseCollectiveWord("all_reduce_perf").value(), "allreduce");
  EXPECT_EQ(ParseCollectiveWord("All-Gather").value(), "allgather");
  EXPECT_EQ(ParseCollectiveWord("sendrecv_perf").value(), "sendrecv");
  const Status unknown = ParseCollectiveWord("al_reduce").status();
  EXPECT_NE(unknown.message().find("did you mean 'allreduce'"), std::string::npos);
}

TEST(WordsTest, CollectivesInFileNames) {
  EXPECT_EQ(CollectiveInName("a/all_gather_output.dat.3"), "allgather");
  EXPECT_EQ(CollectiveInName("run_reduce_scatter.log"), "reducescatter");
  EXPECT_EQ(CollectiveInName("reduce/x.log"), "");
  EXPECT_EQ(CollectiveInName("all_reduce_and_all_gather.log"), "");
}

TEST(WordsTest, DecimalsAndTheirLastDigit) {
  double value = 0;
  double half = 0;
  ASSERT_TRUE(ParseDecimal("17.31", &value, &half));
  EXPECT_DOUBLE_EQ(value, 17.31);
  EXPECT_DOUBLE_EQ(half, 0.005);
  ASSERT_TRUE(ParseDecimal("159460", &value, &half));
  EXPECT_DOUBLE_EQ(half, 0.5);
  ASSERT_TRUE(ParseDecimal("1e+06", &value, &half));
  EXPECT_DOUBLE_EQ(value, 1e6);
  EXPECT_DOUBLE_EQ(half, 5e5);
  for (const char* text :
       {"", "nan", "inf", "-inf", "1e400", "0x10", "1.2.3", "12 ", " 12", "1,2", "1e", "++1"}) {
    EXPECT_FALSE(ParseDecimal(text, &value, &half)) << text;
  }
}

TEST(WordsTest, ConfigurationsInOneForm) {
  Point point;
  point.collective = "allreduce";
  ASSERT_TRUE(SetConfig("rccl", "RING", "LL128", 8, &point).ok());
  EXPECT_EQ(point.algorithm, "ring");
  EXPECT_EQ(point.protocol, "ll128");
  EXPECT_EQ(point.channels, 8);
  ASSERT_TRUE(SetConfig("", "DEFAULT", "DEFAULT", -1, &point).ok());
  EXPECT_TRUE(point.IsDefault());
  EXPECT_FALSE(SetConfig("nccl", "rng", "", 0, &point).ok());
  EXPECT_FALSE(SetConfig("ncl", "ring", "", 0, &point).ok());
  EXPECT_FALSE(SetConfig("nccl", "ring", "", 5000, &point).ok());
  EXPECT_EQ(SortEnvironment({"B=2", "A=1"}).value(), "A=1 B=2");
  EXPECT_FALSE(SortEnvironment({"A"}).ok());
  EXPECT_FALSE(SortEnvironment({"A=1 2"}).ok());
  EXPECT_FALSE(SortEnvironment({"NCCL_ALGO=Ring"}).ok());
}

TEST(CsvTest, QuotedCellsSurvive) {
  const std::vector<std::string> cells = {"plain",      "with,comma", "with \"quotes\"",
                                          "two\nlines", "",           "cr\rlf"};
  std::string line;
  for (const std::string& cell : cells) {
    if (!line.empty()) line += ',';
    line += CsvCell(cell);
  }
  std::string text = line + "\r\nnext";
  std::string_view rest = text;
  int number = 0;
  EXPECT_EQ(TakeCsvRow(&rest, &number).value(), cells);
  EXPECT_EQ(number, 2);
  EXPECT_EQ(TakeCsvRow(&rest, &number).value(), std::vector<std::string>{"next"});
  EXPECT_TRUE(rest.empty());
}

TEST(CsvTest, WhatIsNoTableIsRefused) {
  int number = 0;
  std::string_view open = "a,\"never closed";
  EXPECT_FALSE(TakeCsvRow(&open, &number).ok());
  const std::string commas(100000, ',');
  std::string_view many = commas;
  EXPECT_FALSE(TakeCsvRow(&many, &number).ok());
}

TEST(TimeFigureTest, TheIntervalHasTheUnitOfTheMedian) {
  EXPECT_EQ(TimeFigureText(1.9177e-3, {1.467e-3, 3.7285e-3}, 12), "1.918 ms [1.467, 3.728]");
  EXPECT_EQ(TimeFigureText(999.4e-6, {990e-6, 1234e-6}, 12), "999.4 us [990.0, 1234]");
  EXPECT_EQ(TimeFigureText(12e-6, {11e-6, 13e-6}, 3), "12.00 us (11.00 to 13.00)");
  EXPECT_EQ(TimeFigureText(500e-9, {490e-9, 510e-9}, 6), "500 ns [490, 510]");
  EXPECT_EQ(TimeFigureText(12e-6, {12e-6, 12e-6}, 1), "12.00 us");
  EXPECT_EQ(TimeFigureText(2, {1, 12345.6}, 9), "2.000 s [1.000, 12346]");
}

}  // namespace
}  // namespace diapason::dataset
