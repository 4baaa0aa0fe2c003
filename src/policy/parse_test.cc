#include "policy/parse.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "policy/testing.h"

namespace diapason::policy {
namespace {

constexpr char kGoodRow[] = "allreduce,0,1024,ring,simple,4,2,16,-1,-1\n";

ParseOutcome Parse(std::string_view text, Library library = Library::kNccl) {
  ParseOptions options;
  options.library = library;
  return ParsePolicy(text, options);
}

// The first error of the text, which must be the only one.
std::string OnlyError(std::string_view text, Library library = Library::kNccl) {
  const ParseOutcome outcome = Parse(text, library);
  if (outcome.errors != 1) return Format("{} errors", outcome.errors);
  return DiagnosticText("x.conf", outcome.diagnostics.at(0));
}

// The first of several errors.
std::string FirstError(std::string_view text) {
  return DiagnosticText("x.conf", Parse(text).diagnostics.at(0));
}

bool Holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Where the row's field begins, from 1.
size_t ColumnOf(const std::string& row, size_t field) {
  size_t start = 0;
  for (; field > 0; --field) start = row.find(',', start) + 1;
  return start + 1;
}

// A row with one wrong field: the error stands at that field and says what `message` says.
struct WrongRow {
  std::string row;
  size_t field;  // from 0
  std::vector<std::string> message;
  Library library = Library::kNccl;
};

TEST(ParseTest, AWrongFieldIsNamedWithItsPlaceAndWhatToWriteInstead) {
  const std::vector<WrongRow> cases{
      {"allredcue,0,8,ring,ll,-1,-1,-1,-1,-1",
       0,
       {"unknown collective 'allredcue'", "did you mean 'allreduce'?"}},
      {"wrongtype,0,8,ring,ll,-1,-1,-1,-1,-1",
       0,
       {"unknown collective 'wrongtype'", "known are broadcast, reduce, allgather"}},
      {"alltoall,0,8,ring,ll,-1,1,8,-1,-1", 0, {"collective 'alltoall'", "asks no tuner"}},
      {"allreduce,9,8,ring,ll,-1,-1,-1,-1,-1", 1, {"reversed", "min_bytes 9", "max_bytes 8"}},
      {"allreduce,-1,8,ring,ll,-1,-1,-1,-1,-1", 1, {"min_bytes '-1'", "not a number of bytes"}},
      {"allreduce,1.5K,8192,ring,ll,-1,-1,-1,-1,-1", 1, {"min_bytes '1.5K'", "write 1536"}},
      {"allreduce,0,18446744073709551616,ring,ll,-1,-1,-1,-1,-1",
       2,
       {"max_bytes '18446744073709551616'", "not a number of bytes"}},
      {"allreduce,0,,ring,ll,-1,-1,-1,-1,-1", 2, {"max_bytes ''", "not a number of bytes"}},
      {"allreduce,0,128M,ring,ll,-1,-1,-1,-1,-1", 2, {"max_bytes '128M'", "write 134217728"}},
      {"allreduce,0,1MB,ring,ll,-1,-1,-1,-1,-1", 2, {"max_bytes '1MB'", "write 1000000"}},
      {"allreduce,0,8,rign,ll,-1,-1,-1,-1,-1",
       3,
       {"unknown algorithm 'rign'", "did you mean 'ring'?"}},
      {"allreduce,0,8,direct,ll,-1,1,8,-1,-1",
       3,
       {"algorithm 'direct'", "can be measured, not chosen"},
       Library::kRccl},
      {"allreduce,0,8,ring,ll129,-1,-1,-1,-1,-1",
       4,
       {"unknown protocol 'll129'", "did you mean 'll128'?"}},
      {"allreduce,0,8,ring,simple,-1,1,8,-1,-1",
       4,
       {"Open MPI has no protocols", "write -1"},
       Library::kOpenMpi},
      {"allreduce,0,8,ring,ll,-2,-1,-1,-1,-1", 5, {"channels '-2'", "1 to 64 for NCCL"}},
      {"allreduce,0,8,ring,ll,many,-1,-1,-1,-1", 5, {"channels 'many'", "1 to 64 for NCCL"}},
      {"allreduce,0,8,ring,ll,65,-1,-1,-1,-1",
       5,
       {"channels '65'", "1 to 64 for NCCL", "library=rccl"}},
      {"allreduce,0,8,ring,ll,128,-1,-1,-1,-1",
       5,
       {"channels '128'", "1 to 127 for RCCL"},
       Library::kRccl},
      {"allreduce,0,8,ring,ll,-1,-3,-1,-1,-1", 6, {"nNodes '-3'", "from 1", "-1 for any"}},
      {"allreduce,0,8,ring,ll,-1,0,-1,-1,-1", 6, {"nNodes '0'", "from 1", "-1 for any"}},
      {"allreduce,0,8,ring,ll,-1,1,-8,-1,-1", 7, {"nRanks '-8'", "from 1", "-1 for any"}},
      {"allreduce,0,8,ring,ll,-1,1,2147483648,-1,-1", 7, {"nRanks '2147483648'", "from 1"}},
      {"allreduce,0,8,ring,ll,-1,1,8,-2,-1", 8, {"numPipeOps '-2'", "from 0", "-1 for any"}},
      {"allreduce,0,8,ring,ll,-1,1,8,1,2", 9, {"regBuff '2'", "0 to 1", "-1 for any"}},
  };
  for (const WrongRow& wrong : cases) {
    const std::string error = OnlyError("# rules\n" + wrong.row + "\n", wrong.library);
    const std::string place = Format("x.conf:2:{}: error: ", ColumnOf(wrong.row, wrong.field));
    EXPECT_TRUE(error.starts_with(place)) << place << "\n" << error;
    for (const std::string& part : wrong.message) EXPECT_TRUE(Holds(error, part)) << error;
  }
}

TEST(ParseTest, EveryWrongFieldOfARowIsReported) {
  const ParseOutcome outcome = Parse("x,a,b,y,z,q,0,0,-5,9\n");
  EXPECT_EQ(outcome.errors, 10u);
  EXPECT_TRUE(outcome.policy.rules.empty());
}

TEST(ParseTest, ARowHasEightToTenFields) {
  const std::string fields[] = {"allreduce", "0",  "8",  "ring", "ll", "-1",
                                "-1",        "-1", "-1", "-1",   "-1", "-1"};
  std::string row;
  for (size_t count = 1; count <= 12; ++count) {
    row += (count > 1 ? "," : "") + fields[count - 1];
    if (count >= 8 && count <= 10) {
      EXPECT_EQ(Parse(row).errors, 0u) << row;
      continue;
    }
    const std::string error = OnlyError("\n" + row);
    EXPECT_TRUE(error.starts_with(Format("x.conf:2: error: {} fields;", count))) << error;
  }
  EXPECT_TRUE(Holds(OnlyError(row.substr(0, row.rfind(',')) + ","), "12 fields"))
      << "an empty field counts";
}

TEST(ParseTest, EightColumnsMatchAnyPipeOpsAndRegBuff) {
  const ParseOutcome outcome = Parse("allreduce,1,2,tree,ll,3,4,5\n");
  ASSERT_EQ(outcome.errors, 0u);
  Rule expected;
  expected.min_bytes = 1;
  expected.max_bytes = 2;
  expected.config = {kTree, kLl, 3};
  expected.nodes = 4;
  expected.ranks = 5;
  EXPECT_EQ(Fields(outcome.policy.rules.at(0)), Fields(expected));
}

TEST(ParseTest, TheLargestCountAndSizeAreRead) {
  const ParseOutcome outcome =
      Parse("allreduce,0,18446744073709551615,-1,-1,64,2147483647,2147483647,2147483647,1\n");
  ASSERT_EQ(outcome.errors, 0u);
  const Rule& rule = outcome.policy.rules.at(0);
  EXPECT_EQ(rule.max_bytes, UINT64_MAX);
  EXPECT_EQ(rule.ranks, INT32_MAX);
  EXPECT_EQ(rule.pipe_ops, INT32_MAX);
  EXPECT_EQ(rule.config.channels, 64);
}

TEST(ParseTest, ChannelsFollowTheLibrary) {
  const std::string row = "allreduce,0,8,ring,simple,112,-1,-1,-1,-1\n";
  EXPECT_EQ(Parse(row, Library::kNccl).errors, 1u);
  EXPECT_EQ(Parse(row, Library::kRccl).errors, 0u);
  EXPECT_EQ(Parse("# diapason: library=rccl\n" + row, Library::kNccl).errors, 0u);
  for (const char* own : {"-1", "0"}) {
    const ParseOutcome outcome = Parse(Format("allreduce,0,8,ring,ll,{},-1,-1", own));
    ASSERT_EQ(outcome.errors, 0u) << own;
    EXPECT_EQ(outcome.policy.rules[0].config.channels, 0) << own;
  }
  EXPECT_FALSE(Holds(OnlyError("allreduce,0,8,ring,-1,4,-1,-1", Library::kOpenMpi), "1 to 0"))
      << "Open MPI has no channels: there is no range to name";
}

TEST(ParseTest, CommentsBlankLinesAndLineEndsAreAllFine) {
  const char* texts[] = {
      "\xef\xbb\xbf# comment\n\n  \t \n  allreduce , 0 , 8 , ring , ll , 2 , -1 , -1  # why\n",
      "\xef\xbb\xbf# comment\r\n\r\n\r\nAll_Reduce,0,8,RING,LL,2,-1,-1,-1,-1\r\n",
      "\n\n# a, b, c\nallreduce,0,8,ring,ll,2,-1,-1,-1,-1#x",
      "\n#\n##\nall-reduce,0,8,Ring,Ll,2,-1,-1,-1,-1\n# end",
  };
  for (const char* text : texts) {
    const ParseOutcome outcome = Parse(text);
    ASSERT_EQ(outcome.errors, 0u) << text;
    ASSERT_EQ(outcome.policy.rules.size(), 1u) << text;
    EXPECT_EQ(RuleText(Library::kNccl, outcome.policy.rules[0]),
              "allreduce,0,8,ring,ll,2,-1,-1,-1,-1");
    EXPECT_EQ(outcome.policy.rules[0].line, 4) << text;
    EXPECT_EQ(Digest(outcome.policy), Digest(Parse(texts[0]).policy)) << text;
  }
  for (const char* nothing : {"", "\n", "# only a comment", "\xef\xbb\xbf", "\r\n\r\n"}) {
    const ParseOutcome outcome = Parse(nothing);
    EXPECT_EQ(outcome.errors, 0u);
    EXPECT_TRUE(outcome.policy.rules.empty());
  }
}

TEST(ParseTest, ColumnsCountTheBlanksBeforeAField) {
  EXPECT_TRUE(OnlyError("  allreduce, 0, 8,   rng, ll, -1, -1, -1").starts_with("x.conf:1:22: "));
}

TEST(ParseTest, TheLineOfColumnNamesIsSkippedAndChecked) {
  const std::string names =
      "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks";
  for (const std::string& line :
       {names, names + ",numPipeOps,regBuff", names + ",num_pipe_ops,REG_BUFF",
        std::string(" Collective Type , min_bytes")}) {
    EXPECT_EQ(Parse(line + "\n" + kGoodRow).policy.rules.size(), 1u) << line;
    EXPECT_EQ(Parse(line + "\n" + kGoodRow).errors, 0u) << line;
  }
  EXPECT_TRUE(Holds(OnlyError("collective_type,max_bytes,min_bytes\n"),
                    "x.conf:1:17: error: column 2 is called 'max_bytes'; expected 'min_bytes'"));
  EXPECT_TRUE(
      Holds(OnlyError(names + ",numPipeOps,regBuff,color\n"), "column 11 is called 'color'"));
  EXPECT_TRUE(Holds(FirstError(kGoodRow + names + "\n"), "x.conf:2:1: error: unknown collective"))
      << "only before the rows";
}

TEST(ParseTest, NamesOfOpenMpiDependOnTheCollective) {
  EXPECT_EQ(Parse("allreduce,0,8,segmented_ring,-1,-1,-1,-1", Library::kOpenMpi)
                .policy.rules.at(0)
                .config.algorithm,
            5);
  EXPECT_TRUE(Holds(OnlyError("bcast,0,8,segmented_ring,-1,-1,-1,-1", Library::kOpenMpi),
                    "unknown algorithm"));
  EXPECT_EQ(Parse("alltoall,0,8,pairwise,-1,-1,-1,-1", Library::kOpenMpi).errors, 0u);
}

TEST(ParseTest, BinaryAndOverlongLinesAreRefusedWithTheirLine) {
  const std::string zero = std::string(kGoodRow) + std::string("allreduce\0,0", 12) + "\n";
  EXPECT_TRUE(Holds(OnlyError(zero), "x.conf:2: error: the line holds a zero byte"));
  EXPECT_TRUE(Holds(OnlyError(std::string(1, '\0')), "x.conf:1: error:"));
  const std::string longest = "#" + std::string(kLongestLine - 1, 'x');
  EXPECT_EQ(Parse(longest + "\n").errors, 0u);
  EXPECT_TRUE(Holds(OnlyError("\n" + longest + "x\n"), "x.conf:2: error: the line is longer than"));
}

TEST(ParseTest, MoreRowsOrBytesThanTheLimitAreRefusedNotCut) {
  std::string text;
  for (size_t i = 0; i < kMostRules; ++i) text += "reduce,0,8,-1,-1,1,1,1\n";
  EXPECT_EQ(Parse(text).errors, 0u);
  text += std::string(kGoodRow) + kGoodRow;
  EXPECT_EQ(OnlyError(text), "x.conf:65537: error: more than 65536 rows");

  const std::string line = std::string(kLongestLine - 1, '#') + "\n";
  std::string large;
  while (large.size() < kMostBytes) large += line;
  EXPECT_EQ(Parse(large).errors, 0u);
  large += '\n';
  EXPECT_EQ(OnlyError(large), "x.conf: error: the policy is larger than 16777216 bytes");
}

TEST(ParseTest, MoreConditionsThanTheLimitAreRefused) {
  std::string text;
  for (size_t i = 0; i < kMostConditions; ++i) {
    text += Format("allreduce,0,8,ring,ll,-1,-1,-1,{},-1\n", i);
  }
  const std::string other = "allgather,0,8,ring,ll,-1,-1,-1,7,-1\n";
  ASSERT_EQ(Parse(text + other).errors, 0u) << "the limit is one collective's";
  text += "allreduce,0,8,ring,ll,-1,-1,-1,64,-1\n";
  EXPECT_TRUE(Holds(FirstError(text),
                    "x.conf:65:32: error: the rows of one collective ask for more than 64"));
  const std::string known = "allreduce,9,9,ring,ll,-1,-1,-1,7,-1\n";
  EXPECT_EQ(Parse(text + known + known).errors, 1u) << "rows that ask for nothing new are fine";
}

TEST(ParseTest, AnEightColumnRowCanBeTheOneConditionTooMany) {
  std::string text;
  for (size_t i = 0; i < kMostConditions; ++i) {
    text += Format("allreduce,0,8,ring,ll,-1,-1,-1,{},-1\n", i);
  }
  const std::string row = "allreduce,0,8,ring,ll,-1,-1,-1";
  const ParseOutcome outcome = Parse(text + row + "\n");
  ASSERT_EQ(outcome.errors, 1u);
  EXPECT_EQ(outcome.diagnostics[0].line, 65);
  EXPECT_LE(outcome.diagnostics[0].column, static_cast<int>(row.size())) << "beyond the row";
}

TEST(ParseTest, ErrorsBeyondTheKeptOnesAreCounted) {
  std::string text;
  for (int i = 0; i < 250; ++i) text += "nonsense\n";
  const ParseOutcome outcome = Parse(text);
  EXPECT_EQ(outcome.errors, 250u);
  EXPECT_EQ(outcome.diagnostics.size(), kMostDiagnostics);
  EXPECT_EQ(outcome.diagnostics.back().line, 100);
}

TEST(ParseTest, StrictlyGivesThePolicyOrOneSentence) {
  EXPECT_EQ(ParseStrictly(kGoodRow, "x.conf", {}).value().rules.size(), 1u);
  EXPECT_EQ(ParseStrictly("nonsense\n", "x.conf", {}).status().message(),
            "x.conf:1: error: 1 fields; a row has 10 (or 9 or 8, without regBuff and numPipeOps)");
  const std::string two = ParseStrictly("nonsense\nx\ny\n", "x.conf", {}).status().message();
  EXPECT_TRUE(two.starts_with("x.conf:1: ")) << two;
  EXPECT_TRUE(two.ends_with(" (and 2 more errors)")) << two;
}

TEST(ParseTest, NoContentCrashesTheParser) {
  std::mt19937_64 random(7);
  const std::string alphabet =
      std::string("allreduce,0123456789-#\n\r\" =:diapason.ring\xff") + '\0';
  for (int round = 0; round < 2000; ++round) {
    std::string text = Pick(&random, 2) == 0 ? "# diapason: " : "";
    for (uint64_t i = Pick(&random, 200); i > 0; --i) {
      text += alphabet[Pick(&random, alphabet.size())];
    }
    const ParseOutcome outcome = Parse(text);
    EXPECT_EQ(outcome.errors == 0, ParseStrictly(text, "x", {}).ok()) << text;
  }
}

constexpr char kOpenMpiHead[] = "# diapason: version=1 library=openmpi\n";

TEST(ParsePolicy, OpenMpiHasASegmentColumn) {
  ParseOptions options;
  const std::string rows =
      "broadcast,1048576,1048576,pipeline,-1,-1,-1,4,-1,-1,65536\n"
      "broadcast,0,1024,binomial,-1,-1,-1,4,-1,-1,-1\n"
      "allreduce,0,1024,ring,-1,-1,-1,4,-1,-1\n";
  const ParseOutcome outcome = ParsePolicy(kOpenMpiHead + rows, options);
  ASSERT_EQ(outcome.errors, 0u) << outcome.diagnostics[0].message;
  ASSERT_EQ(outcome.policy.rules.size(), 3u);
  EXPECT_EQ(outcome.policy.rules[0].config.segment_bytes, 65536);
  EXPECT_EQ(outcome.policy.rules[1].config.segment_bytes, 0);
  // Written again, it has the column where it is needed, and the same digest.
  const std::string text = PolicyText(outcome.policy);
  EXPECT_NE(text.find("regBuff,segmentBytes\n"), std::string::npos);
  EXPECT_NE(text.find("broadcast,0,1024,binomial,-1,-1,-1,4,-1,-1\n"), std::string::npos);
  const ParseOutcome again = ParsePolicy(text, options);
  ASSERT_EQ(again.errors, 0u);
  EXPECT_EQ(Digest(again.policy), Digest(outcome.policy));
  EXPECT_EQ(again.policy.rules[0].config, outcome.policy.rules[0].config);
}

TEST(ParsePolicy, SegmentsAreCheckedAndOfNoOtherLibrary) {
  ParseOptions options;
  for (const char* row :
       {"broadcast,0,9,pipeline,-1,-1,-1,4,-1,-1,64K", "broadcast,0,9,pipeline,-1,-1,-1,4,-1,-1,-2",
        "broadcast,0,9,pipeline,-1,-1,-1,4,-1,-1,4294967296",
        "broadcast,0,9,-1,-1,-1,-1,4,-1,-1,65536", "broadcast,0,9,pipeline,-1,-1,-1,4,-1,-1,1,1"}) {
    EXPECT_EQ(ParsePolicy(std::string(kOpenMpiHead) + row + "\n", options).errors, 1u) << row;
  }
  EXPECT_EQ(ParsePolicy("allreduce,0,9,tree,simple,-1,-1,4,-1,-1,65536\n", options).errors, 1u);
}

}  // namespace
}  // namespace diapason::policy
