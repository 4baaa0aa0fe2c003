#include "measure/measurer.h"

#include <gtest/gtest.h>

#include <thread>

#include "measure/bench.h"
#include "measure/group_measurer.h"
#include "measure/job_measurer.h"
#include "measure/pairs.h"
#include "measure/pattern.h"
#include "measure/targets.h"
#include "measure/tests_measurer.h"

namespace diapason::measure {
namespace {

using dataset::SampleOutcome;

constexpr DataType kTypes[] = {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBf16,
                               DataType::kI8,  DataType::kU8,  DataType::kI32, DataType::kI64};
constexpr ReduceOp kReductions[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax,
                                    ReduceOp::kAvg};

// Ranks as threads on the simulated cluster; rank 0 leads and runs `body`.
template <typename Body>
void WithRanks(int ranks, const Body& body) {
  static int port = 20000;
  ++port;
  const auto options = [&](int rank) {
    GroupOptions group;
    group.backend = "sim";
    group.cluster = "h100x8";
    group.rank = rank;
    group.size = ranks;
    group.master_port = port;
    group.choose = true;
    group.timeout = std::chrono::seconds(60);
    return group;
  };
  std::vector<std::thread> threads;
  for (int rank = 1; rank < ranks; ++rank) {
    threads.emplace_back([&options, rank] {
      auto group = Group::Create(options(rank));
      ASSERT_TRUE(group.ok()) << group.status().message();
      const Status followed = GroupMeasurer::Follow(group.value().get());
      EXPECT_TRUE(followed.ok()) << followed.message();
    });
  }
  {
    auto group = Group::Create(options(0));
    ASSERT_TRUE(group.ok()) << group.status().message();
    auto measurer = GroupMeasurer::Lead(group.value().get(), "h100x8");
    ASSERT_TRUE(measurer.ok()) << measurer.status().message();
    body(measurer.value().get());
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PatternTest, FindsEveryWrongElementOfEveryTypeAndReduction) {
  for (const DataType type : kTypes) {
    for (const ReduceOp reduce : kReductions) {
      for (const int ranks : {1, 2, 3, 8, 40}) {
        constexpr size_t kCount = 5000;
        const size_t size = SizeOf(type);
        std::vector<char> mine(kCount * size);
        FillInput(mine.data(), kCount, 7, type, reduce, ranks - 1, ranks);
        EXPECT_EQ(CountWrongCopied(mine.data(), kCount, 7, type, reduce, ranks - 1, ranks), 0);
        mine[size * 4999] = static_cast<char>(mine[size * 4999] ^ 0x40);
        mine[0] = static_cast<char>(mine[0] ^ 0x40);
        EXPECT_EQ(CountWrongCopied(mine.data(), kCount, 7, type, reduce, ranks - 1, ranks), 2)
            << DataTypeName(type);
      }
    }
  }
}

TEST(PatternTest, TheSumOfOneRankIsItsInput) {
  std::vector<float> values(1000);
  FillInput(values.data(), values.size(), 0, DataType::kF32, ReduceOp::kSum, 0, 1);
  EXPECT_EQ(CountWrongReduced(values.data(), values.size(), 0, DataType::kF32, ReduceOp::kSum, 1),
            0);
  values[3] += 1;
  values[4] = std::nanf("");
  EXPECT_EQ(CountWrongReduced(values.data(), values.size(), 0, DataType::kF32, ReduceOp::kSum, 1),
            2);
}

TEST(RankTimerTest, EveryCollectiveIsRightInEveryTypeAndReduction) {
  WithRanks(3, [](GroupMeasurer* measurer) {
    for (const Operation operation :
         {Operation::kAllReduce, Operation::kBroadcast, Operation::kReduce, Operation::kAllGather,
          Operation::kReduceScatter, Operation::kAllToAll, Operation::kSend}) {
      for (const DataType type : kTypes) {
        for (const ReduceOp reduce : kReductions) {
          for (const bool in_place : {false, true}) {
            Trial trial;
            trial.operation = operation;
            trial.type = type;
            trial.reduce = reduce;
            trial.in_place = in_place;
            trial.root = 2;
            trial.bytes = 3 * 8 * 11;
            trial.check = true;
            trial.iterations = 2;
            const Result<Measurement> measurement = measurer->Measure(trial);
            ASSERT_TRUE(measurement.ok()) << measurement.status().message();
            const bool exists =
                !in_place || (operation != Operation::kAllToAll && operation != Operation::kSend);
            EXPECT_EQ(measurement.value().outcome,
                      exists ? SampleOutcome::kFine : SampleOutcome::kRefused)
                << measurement.value().note << " " << OperationName(operation) << " "
                << DataTypeName(type) << " " << ReduceOpName(reduce) << " " << in_place;
            if (!exists) continue;
            EXPECT_EQ(measurement.value().wrong, 0);
            EXPECT_GT(measurement.value().seconds, 0);
            EXPECT_LE(measurement.value().fastest, measurement.value().seconds);
          }
        }
      }
    }
  });
}

TEST(RankTimerTest, WhatCannotBeMeasuredIsRefusedAndTheNextTrialRuns) {
  WithRanks(2, [](GroupMeasurer* measurer) {
    Trial trial;
    trial.operation = Operation::kAllGather;
    trial.bytes = 4;  // less than a float for each of two ranks
    EXPECT_EQ(measurer->Measure(trial).value().outcome, SampleOutcome::kRefused);
    trial = {};
    trial.bytes = 1024;
    trial.config.algorithm = 99;
    const Measurement refused = measurer->Measure(trial).value();
    EXPECT_EQ(refused.outcome, SampleOutcome::kRefused);
    EXPECT_FALSE(refused.note.empty());
    trial.config = {};
    EXPECT_EQ(measurer->Measure(trial).value().outcome, SampleOutcome::kFine);
    EXPECT_FALSE(measurer->broken());
  });
}

TEST(RankTimerTest, ABroadcastTakesAsLongAsItsSlowestRank) {
  WithRanks(4, [](GroupMeasurer* measurer) {
    Trial trial;
    trial.operation = Operation::kBroadcast;
    trial.bytes = 1 << 20;
    trial.iterations = 3;
    const Measurement measurement = measurer->Measure(trial).value();
    EXPECT_GE(measurement.seconds, measurement.fastest);
    trial.only_ranks = 2;
    const Measurement two = measurer->Measure(trial).value();
    EXPECT_EQ(two.outcome, SampleOutcome::kFine) << two.note;
    EXPECT_GT(two.seconds, 0);
    EXPECT_EQ(PointOf(trial, measurer->subject()).ranks, 2);
    const Result<Measurement> pair = measurer->MeasurePair(1, 3, 1 << 20, 4);
    ASSERT_TRUE(pair.ok());
    EXPECT_GT(pair.value().seconds, 0);
  });
}

TEST(BenchTest, RoundsAreTakenUntilTheIntervalIsTight) {
  WithRanks(2, [](GroupMeasurer* measurer) {
    Trial trial;
    trial.bytes = 4096;
    Effort effort;
    effort.seconds = 1000;
    effort.tight = 1e9;  // any interval
    std::vector<dataset::Sample> samples;
    const Result<TimingFigure> figure = MeasureFigure(measurer, trial, effort, &samples);
    ASSERT_TRUE(figure.ok());
    EXPECT_EQ(figure.value().rounds.size(), size_t{kLeastJudgedRounds});
    EXPECT_EQ(samples.size(), size_t{kLeastJudgedRounds});
    EXPECT_EQ(figure.value().wrong, 0);
    EXPECT_LE(figure.value().interval.low, figure.value().median);
    EXPECT_GE(figure.value().interval.high, figure.value().median);
    effort.tight = 0;
    EXPECT_EQ(MeasureFigure(measurer, trial, effort).value().rounds.size(), 15U);
  });
}

TEST(PairsTest, ASlowMemberIsNamedRatherThanItsLinks) {
  std::vector<PairFigure> pairs;
  for (int first = 0; first < 6; ++first) {
    for (int second = first + 1; second < 6; ++second) {
      PairFigure pair;
      pair.first = first;
      pair.second = second;
      pair.bandwidth = 1e10 * (1 + 0.01 * ((first * 7 + second) % 3));
      if (first == 4 || second == 4) pair.bandwidth *= 0.5;
      if (first == 0 && second == 1) pair.bandwidth *= 0.7;
      pairs.push_back(pair);
    }
  }
  const std::vector<OddOne> odd = FindOddOnes(pairs);
  ASSERT_EQ(odd.size(), 2U);
  EXPECT_EQ(odd[0].member, 4);
  EXPECT_EQ(odd[0].pairs.size(), 5U);
  EXPECT_EQ(odd[1].member, -1);
  EXPECT_EQ(pairs[odd[1].pairs[0]].second, 1);
}

TEST(PairsTest, OneSlowHostOfFour) {
  std::vector<PairFigure> pairs;
  for (int first = 0; first < 4; ++first) {
    for (int second = first + 1; second < 4; ++second) {
      PairFigure pair;
      pair.first = first;
      pair.second = second;
      pair.bandwidth = (first == 2 || second == 2 ? 1e6 : 1e7) * (1 + 0.01 * first);
      pairs.push_back(pair);
    }
  }
  const std::vector<OddOne> odd = FindOddOnes(pairs);
  ASSERT_EQ(odd.size(), 1U);
  EXPECT_EQ(odd[0].member, 2);
  EXPECT_EQ(odd[0].pairs.size(), 3U);
  EXPECT_NEAR(odd[0].share, 0.1, 0.01);
}

TEST(PairsTest, LinksThatDifferAnyhowAreNotOdd) {
  std::vector<PairFigure> pairs;
  for (int i = 0; i < 10; ++i) {
    PairFigure pair;
    pair.second = i + 1;
    pair.bandwidth = 1e9 * (1 + 0.1 * i);
    pairs.push_back(pair);
  }
  EXPECT_TRUE(FindOddOnes(pairs).empty());
  pairs.resize(2);
  EXPECT_TRUE(FindOddOnes(pairs).empty());
}

TEST(TargetsTest, ReadsGoalsAndRefusesWhatItDoesNotKnow) {
  const Result<std::vector<Target>> targets = ParseTargets(
      "[[target]]\nname='a'\nbytes='100KB'\nat_most='0.5ms'\n"
      "[[target]]\nname='b'\nbytes='1M'\nabout='10ms'\n"
      "[[target]]\nbytes='1M'\nbusbw_at_least='90GB/s'\nalgorithm='ring'\n"
      "[[target]]\nbytes='1M'\nranks=4\nscaling_at_least=0.95\n"
      "[[target]]\niteration='tp'\nexposed_at_most=0.05\n",
      "t.toml");
  ASSERT_TRUE(targets.ok()) << targets.status().message();
  ASSERT_EQ(targets.value().size(), 5U);
  EXPECT_DOUBLE_EQ(targets.value()[0].value, 0.0005);
  EXPECT_EQ(targets.value()[0].bytes, 100000U);
  EXPECT_TRUE(Meets(targets.value()[0], 0.0005));
  EXPECT_FALSE(Meets(targets.value()[0], 0.00051));
  EXPECT_TRUE(Meets(targets.value()[1], 0.012));
  EXPECT_FALSE(Meets(targets.value()[1], 0.013));
  EXPECT_TRUE(Meets(targets.value()[2], 91e9));
  EXPECT_FALSE(Meets(targets.value()[4], 0.06));
  for (const char* bad :
       {"", "x = 1", "[[target]]", "[[target]]\nbytes='1M'\nat_most='0.5'",
        "[[target]]\nbytes='1M'\nat_most='1ms'\nabout='1ms'", "[[target]]\nat_most='1ms'",
        "[[target]]\nbytes='1M'\nat_mots='1ms'", "[[target]]\nbytes='1M'\nscaling_at_least=0.9",
        "[[target]]\nbytes='1M'\nat_most='-1ms'", "[[target]]\nexposed_at_most=0.05",
        "[[target]]\ncollective='allreduse'\nbytes='1M'\nat_most='1ms'", "[target", "target = 3"}) {
    EXPECT_FALSE(ParseTargets(bad, "t.toml").ok()) << bad;
  }
  EXPECT_NE(ParseTargets("[[target]]\nbytes='1M'\nat_mots='1ms'\nabout='1ms'", "t.toml")
                .status()
                .message()
                .find("at_most"),
            std::string::npos);
}

TEST(TestsEnvironmentTest, SaysItInTheLibrarysOwnWords) {
  Trial trial;
  trial.config = {kTree, kLl128, 8};
  const std::vector<std::pair<std::string, std::string>> expected = {{"NCCL_ALGO", "Tree"},
                                                                     {"NCCL_PROTO", "LL128"},
                                                                     {"NCCL_MIN_NCHANNELS", "8"},
                                                                     {"NCCL_MAX_NCHANNELS", "8"},
                                                                     {"NCCL_TUNER_PLUGIN", "none"}};
  EXPECT_EQ(TestsEnvironment(trial), expected);
  EXPECT_EQ(TestsEnvironment({}).size(), 1U);
}

TEST(EnvironmentTest, KeepsWhatMattersAndNoIdentities) {
  const MapEnvironment environment({{"NCCL_ALGO", "Ring"},
                                    {"NCCL_HOSTID", "h3"},
                                    {"HOME", "/root"},
                                    {"OMPI_MCA_btl", "tcp"},
                                    {"NCCL_DEBUG_FILE", "/tmp/x"},
                                    {"CUDA_VISIBLE_DEVICES", "0"}});
  const std::map<std::string, std::string> expected = {
      {"CUDA_VISIBLE_DEVICES", "0"}, {"NCCL_ALGO", "Ring"}, {"OMPI_MCA_btl", "tcp"}};
  EXPECT_EQ(EnvironmentThatMatters(environment), expected);
}

}  // namespace
}  // namespace diapason::measure
