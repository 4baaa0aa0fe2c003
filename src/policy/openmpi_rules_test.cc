#include "policy/openmpi_rules.h"

#include <gtest/gtest.h>

#include <climits>
#include <optional>

#include "base/text.h"
#include "policy/openmpi_testing.h"
#include "policy/parse.h"
#include "policy/testing.h"

namespace diapason::policy {
namespace {

constexpr int kIds[kCollectiveCount] = {7, 11, 0, 12, 2, 3};  // in the order of Collective
constexpr const char* kHead = "# diapason: version=1 library=openmpi\n";

Policy Parsed(const std::string& rows) {
  Result<Policy> policy = ParseStrictly(kHead + rows, "test", {});
  EXPECT_TRUE(policy.ok()) << policy.status().message();
  return policy.ok() ? policy.value() : Policy{};
}

RulesFile Exported(const Policy& policy, std::vector<std::string>* notes, int64_t nodes = kAny) {
  const Result<std::string> text = OpenMpiRulesText(policy, notes, nodes);
  EXPECT_TRUE(text.ok()) << text.status().message();
  if (!text.ok()) return {};
  const std::optional<RulesFile> file = RulesFile::Read(text.value());
  EXPECT_TRUE(file.has_value()) << text.value();
  return file.value_or(RulesFile{});
}

RulesFile Exported(const std::string& rows, std::vector<std::string>* notes = nullptr,
                   int64_t nodes = kAny) {
  return Exported(Parsed(rows), notes, nodes);
}

long Algorithm(const RulesFile& file, Collective collective, long ranks, uint64_t bytes) {
  return file.Find(kIds[static_cast<int>(collective)], ranks, bytes).algorithm;
}

std::string ErrorOf(const Policy& policy, int64_t nodes = kAny) {
  std::vector<std::string> notes;
  const Result<std::string> text = OpenMpiRulesText(policy, &notes, nodes);
  EXPECT_FALSE(text.ok());
  return text.status().message();
}

TEST(OpenMpiRules, WholeFile) {
  Policy policy = Parsed("allreduce,1024,2047,ring,-1,-1,-1,4,-1,-1\n");
  policy.header.origin = "a\nb";
  const Result<std::string> text = OpenMpiRulesText(policy, nullptr);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text.value(),
            "# Dynamic rules for Open MPI's coll_tuned, written by diapason from the "
            "policy\n# " +
                DigestText(Digest(policy)) +
                "; lines are those of its file. Use:\n"
                "#   mpirun --mca coll_tuned_use_dynamic_rules 1 \\\n"
                "#          --mca coll_tuned_dynamic_rules_filename FILE ...\n"
                "# Origin: a b\n"
                "# A rule: bytes from which it holds, algorithm, fan-out, segment "
                "bytes.\n\n"
                "1  # collectives\n\n"
                "2  # MPI_Allreduce\n"
                "3  # communicator sizes\n"
                "1  # ranks and more\n"
                "1  # message sizes\n"
                "0 0 0 0  # Open MPI's own decision\n"
                "4  # ranks and more\n"
                "3  # message sizes\n"
                "0 0 0 0  # Open MPI's own decision\n"
                "1024 4 0 0  # ring, line 2\n"
                "2048 0 0 0  # Open MPI's own decision\n"
                "5  # ranks and more\n"
                "1  # message sizes\n"
                "0 0 0 0  # Open MPI's own decision\n");
}

TEST(OpenMpiRules, EmptyPolicyIsAFileWithoutRules) {
  std::vector<std::string> notes;
  EXPECT_TRUE(Exported("", &notes).collectives().empty());
  EXPECT_EQ(notes, std::vector<std::string>{"no row changes what Open MPI does"});
}

TEST(OpenMpiRules, RowsThatKeepTheDefaultHideLaterOnes) {
  const RulesFile file = Exported(
      "broadcast,100,199,-1,-1,-1,-1,-1,-1,-1\n"
      "broadcast,0,299,binomial,-1,-1,-1,-1,-1,-1\n"
      "reduce,0,99,-1,-1,-1,-1,-1,-1,-1\n");
  EXPECT_EQ(Algorithm(file, Collective::kBroadcast, 4, 99), 6);
  EXPECT_EQ(Algorithm(file, Collective::kBroadcast, 4, 100), 0);
  EXPECT_EQ(Algorithm(file, Collective::kBroadcast, 4, 199), 0);
  EXPECT_EQ(Algorithm(file, Collective::kBroadcast, 4, 299), 6);
  EXPECT_EQ(Algorithm(file, Collective::kBroadcast, 4, 300), 0);
  EXPECT_EQ(file.collectives().size(), 1u);  // nothing to say about reduce
  EXPECT_EQ(file.collectives().at(7).size(), 1u);
}

TEST(OpenMpiRules, EveryCollectiveHasItsNumber) {
  const RulesFile file = Exported(
      "allgather,0,9,bruck,-1,-1,-1,-1,-1,-1\nallreduce,0,9,rabenseifner,-1,-1,-1,-1,-1,-1\n"
      "alltoall,0,9,pairwise,-1,-1,-1,-1,-1,-1\nbcast,0,9,knomial,-1,-1,-1,-1,-1,-1\n"
      "reduce,0,9,in_order_binary,-1,-1,-1,-1,-1,-1\n"
      "reducescatter,0,9,butterfly,-1,-1,-1,-1,-1,-1\n");
  EXPECT_EQ(file.Find(0, 8, 5).algorithm, 2);
  EXPECT_EQ(file.Find(2, 8, 5).algorithm, 6);
  EXPECT_EQ(file.Find(3, 8, 5).algorithm, 2);
  EXPECT_EQ(file.Find(7, 8, 5).algorithm, 7);
  EXPECT_EQ(file.Find(11, 8, 5).algorithm, 6);
  EXPECT_EQ(file.Find(12, 8, 5).algorithm, 4);
  EXPECT_EQ(file.collectives().size(), 6u);
}

TEST(OpenMpiRules, ChainsHaveTheFanOutTheyWereMeasuredWith) {
  Policy policy = Parsed(
      "bcast,0,9,chain,-1,-1,-1,-1,-1,-1\nbcast,10,19,pipeline,-1,-1,-1,-1,-1,-1\n"
      "reduce,0,9,chain,-1,-1,-1,-1,-1,-1\n");
  policy.rules[1].config.segment_bytes = 8192;
  const RulesFile file = Exported(policy, nullptr);
  EXPECT_EQ(file.Find(7, 8, 5), (RulesFile::Choice{2, 4, 0}));
  EXPECT_EQ(file.Find(7, 8, 15), (RulesFile::Choice{3, 0, 8192}));
  EXPECT_EQ(file.Find(11, 8, 5), (RulesFile::Choice{2, 4, 0}));
}

TEST(OpenMpiRules, RanksDoNotLeak) {
  const RulesFile file = Exported(
      "allreduce,0,99,ring,-1,-1,-1,4,-1,-1\n"
      "allreduce,0,99,rabenseifner,-1,-1,-1,5,-1,-1\n"
      "allreduce,50,199,basic_linear,-1,-1,-1,-1,-1,-1\n"
      "allreduce,0,999,recursive_doubling,-1,-1,-1,2147483647,-1,-1\n");
  const auto at = [&](long ranks, uint64_t bytes) {
    return Algorithm(file, Collective::kAllReduce, ranks, bytes);
  };
  for (const long ranks : {1L, 2L, 3L, 6L, 100000L, INT_MAX - 1L}) {
    EXPECT_EQ(at(ranks, 0), 0) << ranks;
    EXPECT_EQ(at(ranks, 50), 1) << ranks;
    EXPECT_EQ(at(ranks, 199), 1) << ranks;
    EXPECT_EQ(at(ranks, 200), 0) << ranks;
  }
  EXPECT_EQ(at(4, 0), 4);
  EXPECT_EQ(at(4, 99), 4);
  EXPECT_EQ(at(4, 100), 1);
  EXPECT_EQ(at(5, 99), 6);
  EXPECT_EQ(at(5, 100), 1);
  EXPECT_EQ(at(INT_MAX, 0), 3);
  EXPECT_EQ(at(INT_MAX, 999), 3);
}

TEST(OpenMpiRules, TwoProcIsForTwo) {
  std::vector<std::string> notes;
  const RulesFile file = Exported(
      "allgather,0,99,two_proc,-1,-1,-1,-1,-1,-1\nallgather,0,999,bruck,-1,-1,-1,-1,-1,-1\n"
      "alltoall,0,99,two_proc,-1,-1,-1,2,-1,-1\n",
      &notes);
  EXPECT_EQ(Algorithm(file, Collective::kAllGather, 2, 99), 6);
  for (const long ranks : {1L, 3L, 4L, 64L}) {
    // First match wins: the second row is no substitute for the first.
    EXPECT_EQ(Algorithm(file, Collective::kAllGather, ranks, 99), 0) << ranks;
    EXPECT_EQ(Algorithm(file, Collective::kAllGather, ranks, 100), 2) << ranks;
    EXPECT_EQ(Algorithm(file, Collective::kAllToAll, ranks, 9), 0) << ranks;
  }
  EXPECT_EQ(Algorithm(file, Collective::kAllToAll, 2, 9), 5);
  EXPECT_EQ(notes,
            std::vector<std::string>{
                "line 2: two_proc is written for two ranks only; with others Open MPI decides"});
}

TEST(OpenMpiRules, EndsOfTheScale) {
  std::vector<std::string> notes;
  const RulesFile file = Exported(
      "allreduce,4096,18446744073709551615,rabenseifner,-1,-1,-1,-1,-1,-1\n"
      "bcast,9223372036854775808,18446744073709551615,binomial,-1,-1,-1,-1,-1,-1\n"
      "reduce,9223372036854775807,18446744073709551615,binomial,-1,-1,-1,-1,-1,-1\n",
      &notes);
  EXPECT_EQ(Algorithm(file, Collective::kAllReduce, 2, 4095), 0);
  EXPECT_EQ(Algorithm(file, Collective::kAllReduce, 2, UINT64_MAX), 6);
  EXPECT_FALSE(file.collectives().contains(7));
  EXPECT_EQ(Algorithm(file, Collective::kReduce, 2, INT64_MAX - 1), 0);
  EXPECT_EQ(Algorithm(file, Collective::kReduce, 2, INT64_MAX), 5);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0], "line 3: left out, larger than any MPI call");
  EXPECT_TRUE(notes[1].starts_with("binomial for reduce: wrong results for")) << notes[1];
}

TEST(OpenMpiRules, Nodes) {
  const std::string one_each =
      "allreduce,0,99,ring,-1,-1,1,4,-1,-1\nallreduce,0,99,basic_linear,-1,-1,2,8,-1,-1\n";
  std::vector<std::string> notes;
  RulesFile file = Exported(one_each, &notes);
  EXPECT_EQ(Algorithm(file, Collective::kAllReduce, 4, 0), 4);
  EXPECT_EQ(Algorithm(file, Collective::kAllReduce, 8, 0), 1);
  ASSERT_FALSE(notes.empty());
  EXPECT_EQ(notes[0],
            "lines 2, 3: a rules file does not know nodes; the choice holds on any number of them");

  const std::string ambiguous = one_each +
                                "allreduce,200,299,rabenseifner,-1,-1,2,-1,-1,-1\n"
                                "bcast,0,9,binomial,-1,-1,3,-1,-1,-1\n";
  EXPECT_EQ(ErrorOf(Parsed(ambiguous)),
            "lines 2 and 4 are for 1 and 2 nodes, which a rules file cannot tell apart: choose "
            "with --nodes");
  file = Exported(ambiguous, &notes, 2);
  EXPECT_EQ(Algorithm(file, Collective::kAllReduce, 4, 0), 0);
  EXPECT_EQ(Algorithm(file, Collective::kAllReduce, 8, 0), 1);
  EXPECT_EQ(Algorithm(file, Collective::kAllReduce, 4, 200), 6);
  EXPECT_FALSE(file.collectives().contains(7));
  EXPECT_EQ(notes, std::vector<std::string>{"lines 2, 5: left out, for another number of nodes"});
}

TEST(OpenMpiRules, ConditionsMatchNoMpiCall) {
  std::vector<std::string> notes;
  const RulesFile file = Exported(
      "allreduce,0,99,nonoverlapping,-1,-1,-1,-1,1,-1\n"
      "allreduce,0,99,basic_linear,-1,-1,-1,-1,-1,0\n"
      "allreduce,0,99,rabenseifner,-1,-1,-1,-1,-1,-1\n",
      &notes);
  EXPECT_EQ(Algorithm(file, Collective::kAllReduce, 4, 0), 6);
  EXPECT_EQ(notes, std::vector<std::string>{
                       "lines 2, 3: left out, for no MPI call has numPipeOps or regBuff"});
}

TEST(OpenMpiRules, Refusals) {
  Policy policy;
  EXPECT_EQ(ErrorOf(policy),
            "only a policy for Open MPI can become its rules file; this one is for NCCL");
  policy.library = Library::kOpenMpi;
  const auto refused = [&](Rule rule) {
    rule.line = 9;
    policy.rules = {rule};
    return ErrorOf(policy).starts_with("line 9: not a row for Open MPI: ");
  };
  Rule rule;
  rule.max_bytes = 99;
  rule.config.algorithm = 7;
  EXPECT_TRUE(refused(rule));
  rule.config = {1, kSimple, 0};
  EXPECT_TRUE(refused(rule));
  rule.config = {1, kKeep, 2};
  EXPECT_TRUE(refused(rule));
  rule.config = {1, kKeep, 0, int64_t{INT_MAX} + 1};
  EXPECT_TRUE(refused(rule));
  rule.config = {1, kKeep, 0, 0};
  rule.ranks = 0;
  EXPECT_TRUE(refused(rule));
  rule.ranks = -7;
  EXPECT_TRUE(refused(rule));
  rule.ranks = 1;
  rule.collective = static_cast<Collective>(6);
  EXPECT_TRUE(refused(rule));
}

TEST(OpenMpiRules, ManyRows) {
  // As many numbers of ranks as a policy may have: accepted alone, too many with rows for any.
  Policy policy;
  policy.library = Library::kOpenMpi;
  for (size_t i = 0; i < kMostRules; ++i) {
    Rule rule;
    rule.max_bytes = 99;
    rule.config.algorithm = 1 + static_cast<int>(i % 6);
    rule.ranks = static_cast<int64_t>(i) + 2;
    rule.line = static_cast<int>(i) + 2;
    policy.rules.push_back(rule);
  }
  std::vector<std::string> notes;
  const RulesFile file = Exported(policy, &notes);
  EXPECT_EQ(notes.size(), 1u);  // ring; no communicator has many
  for (const long ranks : {2L, 3L, 1000L, 65537L}) {
    EXPECT_EQ(Algorithm(file, Collective::kAllReduce, ranks, 99), 1 + (ranks - 2) % 6);
    EXPECT_EQ(Algorithm(file, Collective::kAllReduce, ranks, 100), 0);
  }
  EXPECT_EQ(Algorithm(file, Collective::kAllReduce, 65538, 0), 0);
  for (size_t i = 0; i < kMostRules; i += 2) policy.rules[i].ranks = kAny;
  EXPECT_NE(ErrorOf(policy).find("name fewer numbers of ranks"), std::string::npos);

  // Many sizes for any number of ranks.
  for (size_t i = 0; i < kMostRules; ++i) {
    policy.rules[i].ranks = kAny;
    policy.rules[i].min_bytes = policy.rules[i].max_bytes = 2 * i;
  }
  const RulesFile sizes = Exported(policy, &notes);
  EXPECT_EQ(Algorithm(sizes, Collective::kAllReduce, 3, 2 * 777), 1 + 777 % 6);
  EXPECT_EQ(Algorithm(sizes, Collective::kAllReduce, 3, 2 * 777 + 1), 0);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_TRUE(notes[1].starts_with("a communicator gets up to 131072 rules")) << notes[1];
}

// The policy's choice for a call, independent of the code above.
long Wanted(const Policy& policy, int64_t nodes, Collective collective, long ranks,
            uint64_t bytes) {
  for (const Rule& rule : policy.rules) {
    if (rule.collective != collective || bytes < rule.min_bytes || bytes > rule.max_bytes) continue;
    if (!rule.MatchesShape({nodes, ranks})) continue;
    if (rule.pipe_ops != kAny || rule.reg_buff != kAny) continue;
    const int algorithm = rule.config.algorithm;
    const bool for_two = AlgorithmName(Library::kOpenMpi, collective, algorithm) == "two_proc";
    return algorithm == kKeep || (for_two && ranks != 2) ? 0 : algorithm;
  }
  return 0;
}

TEST(OpenMpiRules, SaysWhatThePolicySays) {
  std::mt19937_64 random(20240607);
  for (int round = 0; round < 200; ++round) {
    Policy policy = RandomPolicy(Library::kOpenMpi, 1 + Pick(&random, 40), &random);
    for (Rule& rule : policy.rules) {
      if (rule.ranks != kAny) rule.ranks = 1 + static_cast<int64_t>(Pick(&random, 9));
    }
    constexpr int64_t kNodes = 2;
    const RulesFile file = Exported(policy, nullptr, kNodes);
    std::vector<uint64_t> sizes{0, 1, INT64_MAX};
    for (const Rule& rule : policy.rules) {
      for (const uint64_t at : {rule.min_bytes, rule.max_bytes}) {
        for (const uint64_t bytes : {at - 1, at, at + 1}) {
          if (bytes <= INT64_MAX) sizes.push_back(bytes);
        }
      }
    }
    for (int c = 0; c < kCollectiveCount; ++c) {
      const auto collective = static_cast<Collective>(c);
      for (long ranks = 1; ranks <= 12; ++ranks) {
        for (const uint64_t bytes : sizes) {
          ASSERT_EQ(Algorithm(file, collective, ranks, bytes),
                    Wanted(policy, kNodes, collective, ranks, bytes))
              << CollectiveName(collective) << ", " << ranks << " ranks, " << bytes << " bytes of\n"
              << PolicyText(policy);
        }
      }
    }
  }
}

}  // namespace
}  // namespace diapason::policy
