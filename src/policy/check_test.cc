#include "policy/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "policy/testing.h"

namespace diapason::policy {
namespace {

ParseOutcome Parse(std::string_view text, Library library = Library::kNccl) {
  ParseOptions options;
  options.library = library;
  return ParsePolicy(text, options);
}

// The lines that are warned about with these words.
std::vector<int> LinesWarned(const std::vector<Diagnostic>& diagnostics, const std::string& words) {
  std::vector<int> lines;
  for (const Diagnostic& diagnostic : diagnostics) {
    EXPECT_EQ(diagnostic.severity, Severity::kWarning);
    if (diagnostic.message.find(words) != std::string::npos) lines.push_back(diagnostic.line);
  }
  return lines;
}
std::vector<int> Shadowed(std::string_view text) {
  return LinesWarned(Parse(text).diagnostics, "never matches");
}

using Lines = std::vector<int>;

TEST(CheckTest, ARowBehindAWiderOneIsShadowed) {
  EXPECT_EQ(Shadowed("allreduce,0,100,ring,ll,-1,-1,-1\n"
                     "allreduce,10,100,tree,ll,-1,-1,-1\n"
                     "allreduce,0,101,tree,ll,-1,-1,-1\n"),
            Lines{2});
  EXPECT_EQ(Shadowed("reduce,8,8,ring,ll,-1,-1,-1\nreduce,8,8,ring,ll,-1,-1,-1\n"), Lines{2})
      << "the same row twice";
  EXPECT_EQ(Shadowed("allreduce,10,100,tree,ll,-1,-1,-1\nallreduce,0,100,ring,ll,-1,-1,-1\n"),
            Lines{})
      << "the wider one is second";
}

TEST(CheckTest, RangesThatTouchShadowTogether) {
  EXPECT_EQ(Shadowed("allreduce,0,10,ring,ll,-1,-1,-1\n"
                     "allreduce,11,20,ring,ll,-1,-1,-1\n"
                     "allreduce,5,15,tree,ll,-1,-1,-1\n"),
            Lines{3});
  EXPECT_EQ(Shadowed("allreduce,21,30,ring,ll,-1,-1,-1\n"
                     "allreduce,0,10,ring,ll,-1,-1,-1\n"
                     "allreduce,9,22,ring,ll,-1,-1,-1\n"
                     "allreduce,0,30,tree,ll,-1,-1,-1\n"
                     "allreduce,0,31,tree,ll,-1,-1,-1\n"),
            Lines{4});
  EXPECT_EQ(Shadowed("allreduce,0,10,ring,ll,-1,-1,-1\n"
                     "allreduce,12,20,ring,ll,-1,-1,-1\n"
                     "allreduce,5,15,tree,ll,-1,-1,-1\n"),
            Lines{})
      << "11 is left";
}

TEST(CheckTest, TheLargestSizesAreCountedRight) {
  const std::string max = "18446744073709551615";
  EXPECT_EQ(Shadowed("allreduce,5," + max + ",ring,ll,-1,-1,-1\n" +  //
                     "allreduce,0,4,ring,ll,-1,-1,-1\n" +            //
                     "allreduce,0," + max + ",tree,ll,-1,-1,-1\n" +  //
                     "allreduce," + max + "," + max + ",tree,ll,-1,-1,-1\n"),
            (Lines{3, 4}));
  EXPECT_EQ(Shadowed("allreduce,1," + max + ",ring,ll,-1,-1,-1\nallreduce,0,0,ring,ll,-1,-1,-1\n"),
            Lines{});
}

TEST(CheckTest, ANarrowerConditionIsCoveredByAny) {
  const std::string any = "allreduce,0,100,ring,ll,-1,-1,-1,-1,-1\n";
  for (const char* narrow :
       {"2,-1,-1,-1", "-1,16,-1,-1", "2,16,-1,-1", "-1,-1,1,-1", "-1,-1,-1,0", "2,16,1,0"}) {
    const std::string row = Format("allreduce,0,100,tree,ll,-1,{}\n", narrow);
    EXPECT_EQ(Shadowed(any + row), Lines{2}) << narrow;
    EXPECT_EQ(Shadowed(row + any), Lines{}) << narrow;
  }
}

TEST(CheckTest, DifferentConditionsDoNotShadow) {
  for (const auto& [first, second] : std::vector<std::pair<const char*, const char*>>{
           {"allreduce,0,9,ring,ll,-1,1,8,-1,-1", "allreduce,0,9,ring,ll,-1,2,16,-1,-1"},
           {"allreduce,0,9,ring,ll,-1,1,-1,-1,-1", "allreduce,0,9,ring,ll,-1,-1,8,-1,-1"},
           {"allreduce,0,9,ring,ll,-1,1,8,-1,-1", "allreduce,0,9,ring,ll,-1,1,16,-1,-1"},
           {"allreduce,0,9,ring,ll,-1,-1,-1,1,-1", "allreduce,0,9,ring,ll,-1,-1,-1,2,-1"},
           {"allreduce,0,9,ring,ll,-1,-1,-1,-1,1", "allreduce,0,9,ring,ll,-1,-1,-1,-1,0"},
           {"allreduce,0,9,ring,ll,-1,-1,-1,-1,-1", "reduce,0,9,ring,ll,-1,-1,-1,-1,-1"}}) {
    EXPECT_EQ(Shadowed(std::string(first) + "\n" + second + "\n"), Lines{}) << second;
  }
}

// Whether any call at all reaches the row: the places where an answer can change are all tried.
bool CanMatch(const Policy& policy, size_t row) {
  std::set<uint64_t> sizes;
  for (const Rule& rule : policy.rules) {
    sizes.insert({rule.min_bytes, rule.max_bytes});
    if (rule.max_bytes != UINT64_MAX) sizes.insert(rule.max_bytes + 1);
  }
  const auto first_match = [&](uint64_t bytes, const Shape& shape, int pipe_ops, int reg_buff) {
    return std::find_if(policy.rules.begin(), policy.rules.end(),
                        [&](const Rule& rule) {
                          return rule.collective == policy.rules[row].collective &&
                                 rule.min_bytes <= bytes && rule.max_bytes >= bytes &&
                                 rule.MatchesShape(shape) &&
                                 (rule.pipe_ops == kAny || rule.pipe_ops == pipe_ops) &&
                                 (rule.reg_buff == kAny || rule.reg_buff == reg_buff);
                        }) -
           policy.rules.begin();
  };
  for (const uint64_t bytes : sizes) {
    for (const int64_t nodes : {1, 2, 4, 99}) {
      for (const int64_t ranks : {8, 16, 99}) {
        for (const int pipe_ops : {0, 1, 2, 99}) {
          for (const int reg_buff : {0, 1}) {
            if (first_match(bytes, {nodes, ranks}, pipe_ops, reg_buff) ==
                static_cast<std::ptrdiff_t>(row)) {
              return true;
            }
          }
        }
      }
    }
  }
  return false;
}

TEST(CheckTest, ShadowedRowsNeverMatchAndRowsCoveredByOneRowAreAllFound) {
  std::mt19937_64 random(3);
  size_t found = 0;
  for (int round = 0; round < 150; ++round) {
    Policy policy = RandomPolicy(Library::kRccl, 12, &random);
    for (Rule& rule : policy.rules) {
      rule.collective = Collective::kAllReduce;
      if (Pick(&random, 2) == 0) rule.nodes = rule.ranks = kAny;
      if (Pick(&random, 2) == 0) rule.pipe_ops = rule.reg_buff = kAny;
    }
    const Lines lines = LinesWarned(CheckRules(policy), "never matches");
    for (size_t i = 0; i < policy.rules.size(); ++i) {
      const Rule& rule = policy.rules[i];
      const bool warned = std::find(lines.begin(), lines.end(), rule.line) != lines.end();
      const bool covered = std::any_of(policy.rules.data(), policy.rules.data() + i,
                                       [&](const Rule& earlier) { return earlier.Covers(rule); });
      EXPECT_FALSE(warned && CanMatch(policy, i)) << RuleText(policy.library, rule);
      EXPECT_FALSE(covered && !warned) << RuleText(policy.library, rule);
      found += warned ? 1 : 0;
    }
  }
  EXPECT_GT(found, 100u) << "the random policies hold too few shadowed rows to tell";
}

TEST(CheckTest, APairThatNoMachineRunsIsNamed) {
  const std::string text =
      "allreduce,0,8,pat,simple,-1,-1,-1\n"
      "broadcast,0,8,tree,-1,-1,-1,-1\n"
      "allgather,0,8,nvls,ll,-1,-1,-1\n"
      "allgather,0,7,pat,-1,-1,-1,-1\n"
      "allreduce,9,9,-1,ll128,-1,-1,-1\n"
      "reduce,0,8,-1,-1,2,-1,-1\n";
  for (const Library library : {Library::kNccl, Library::kRccl}) {
    const ParseOutcome outcome = Parse(text, library);
    EXPECT_EQ(outcome.errors, 0u);
    EXPECT_EQ(LinesWarned(outcome.diagnostics, "never runs"), (Lines{1, 2, 3}));
    EXPECT_NE(outcome.diagnostics[0].message.find("allreduce never runs pat/simple"),
              std::string::npos);
    EXPECT_NE(outcome.diagnostics[1].message.find("broadcast never runs tree/any"),
              std::string::npos);
  }
}

TEST(CheckTest, ChannelsOfCollNetAndRowsByRegBuffAreNamed) {
  const ParseOutcome outcome = Parse(
      "allreduce,0,8,collnet_chain,simple,4,-1,-1,-1,-1\n"
      "allreduce,9,9,collnet_direct,simple,-1,-1,-1,-1,-1\n"
      "allreduce,10,10,ring,simple,4,-1,-1,-1,1\n");
  EXPECT_EQ(LinesWarned(outcome.diagnostics, "channel count is not applied"), Lines{1});
  EXPECT_EQ(LinesWarned(outcome.diagnostics, "DIAPASON_REGBUFF=1"), Lines{3});
  EXPECT_EQ(outcome.warnings, 2u);
}

TEST(CheckTest, OtherLibrariesHaveNoPairsToWarnAbout) {
  EXPECT_EQ(Parse("broadcast,0,8,bcube,polling,4,-1,-1\n", Library::kGloo).warnings, 0u);
  EXPECT_EQ(Parse("alltoall,0,8,pairwise,-1,-1,-1,-1\n", Library::kOpenMpi).warnings, 0u);
}

TEST(CheckTest, WarningsComeInTheOrderOfTheFileAndOnlyWithoutErrors) {
  const std::string text =
      "broadcast,0,8,tree,ll,-1,-1,-1\n"
      "broadcast,0,8,ring,ll,-1,-1,-1\n"
      "broadcast,9,9,tree,ll,-1,-1,-1\n";
  const ParseOutcome outcome = Parse(text);
  Lines lines;
  for (const Diagnostic& diagnostic : outcome.diagnostics) lines.push_back(diagnostic.line);
  EXPECT_EQ(lines, (Lines{1, 2, 3}));
  EXPECT_EQ(outcome.warnings, 3u);
  EXPECT_EQ(
      DiagnosticText("x.conf", outcome.diagnostics[1]),
      "x.conf:2: warning: this row never matches: earlier rows take all of its calls (a job that "
      "learns may try it)");
  EXPECT_EQ(Parse(text + "nonsense\n").warnings, 0u);
}

TEST(CheckTest, AJobGetsNoWarnings) {
  const std::string text = "broadcast,0,8,tree,ll,-1,-1,-1\n";
  ASSERT_EQ(Parse(text).warnings, 1u);
  ParseOptions options;
  options.check_rows = false;
  EXPECT_EQ(ParsePolicy(text, options).warnings, 0u);
  EXPECT_EQ(ParsePolicy("nonsense\n", options).errors, 1u) << "errors are always told";
}

TEST(RealFilesTest, TheFileOfDeliberateMistakesHasEachAtItsPlace) {
  const std::string text = ReadTestFile("incorrect_values_config.excerpt.conf");
  for (const Library library : {Library::kNccl, Library::kRccl}) {
    const ParseOutcome outcome = Parse(text, library);
    const std::vector<std::pair<std::pair<int, int>, std::string>> expected{
        {{4, 1}, "unknown collective 'wrongtype'; known are"},
        {{6, 26}, "unknown algorithm 'badring'; did you mean 'ring'?"},
        {{8, 34}, "unknown protocol 'badproto'; known are ll, ll128, simple"},
        {{10, 11}, "min_bytes 'abc' is not a number of bytes"},
        {{10, 15}, "max_bytes 'def' is not a number of bytes"},
        {{10, 31}, "channels 'xyz': expected 1 to"},
        {{12, 0}, "4 fields; a row has 10"}};
    EXPECT_EQ(outcome.errors, expected.size());
    ASSERT_EQ(outcome.diagnostics.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const Diagnostic& diagnostic = outcome.diagnostics[i];
      EXPECT_EQ(std::pair(diagnostic.line, diagnostic.column), expected[i].first);
      EXPECT_NE(diagnostic.message.find(expected[i].second), std::string::npos)
          << diagnostic.message;
    }
  }
}

TEST(RealFilesTest, TablesOfUpTo64ChannelsAreFineForBothLibraries) {
  for (const auto& [file, rows] : std::vector<std::pair<const char*, size_t>>{
           {"dn_nccl_tuner.conf", 170}, {"rccl_tuner_gfx950.allreduce_broadcast.conf", 37}}) {
    for (const Library library : {Library::kNccl, Library::kRccl}) {
      const ParseOutcome outcome = Parse(ReadTestFile(file), library);
      EXPECT_EQ(outcome.errors, 0u) << file;
      EXPECT_EQ(outcome.warnings, 0u) << file;
      EXPECT_EQ(outcome.policy.rules.size(), rows) << file;
      EXPECT_EQ(outcome.policy.library, library);
    }
  }
}

TEST(RealFilesTest, TheLargeTableIsRcclsAndSaysSoAsNccl) {
  const std::string text = ReadTestFile("gfx950_large.conf");
  const ParseOutcome rccl = Parse(text, Library::kRccl);
  EXPECT_EQ(rccl.errors, 0u);
  EXPECT_EQ(rccl.warnings, 0u);
  EXPECT_EQ(rccl.policy.rules.size(), 1755u);
  EXPECT_EQ(rccl.policy.rules.front().line, 2) << "after the line of column names";

  const auto beyond = std::count_if(rccl.policy.rules.begin(), rccl.policy.rules.end(),
                                    [](const Rule& rule) { return rule.config.channels > 64; });
  const ParseOutcome nccl = Parse(text, Library::kNccl);
  EXPECT_EQ(nccl.errors, static_cast<size_t>(beyond));
  EXPECT_EQ(nccl.diagnostics.at(0).line, 2);
  EXPECT_EQ(nccl.diagnostics.at(0).column, 34);
  for (const Diagnostic& diagnostic : nccl.diagnostics) {
    EXPECT_NE(diagnostic.message.find("library=rccl"), std::string::npos) << diagnostic.message;
  }
  EXPECT_EQ(Parse("# diapason: library=rccl\n" + text, Library::kNccl).errors, 0u);
}

}  // namespace
}  // namespace diapason::policy
