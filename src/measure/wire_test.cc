#include "measure/wire.h"

#include <gtest/gtest.h>

#include "measure/pairs.h"
#include "measure/worker.h"

namespace diapason::measure {
namespace {

using dataset::SampleOutcome;

TEST(WireTest, TrialsMeasurementsAndSubjectsComeBackAsTheyWere) {
  Trial trial;
  trial.operation = Operation::kReduce;
  trial.bytes = 123456789012;
  trial.type = DataType::kBf16;
  trial.reduce = ReduceOp::kMax;
  trial.root = 3;
  trial.in_place = true;
  trial.config = {2, 1, 16, 65536};
  trial.only_ranks = 4;
  trial.warmups = 5;
  trial.iterations = 20;
  trial.check = true;
  const Result<Trial> trial_back = DecodeTrial(EncodeTrial(trial));
  ASSERT_TRUE(trial_back.ok());
  EXPECT_EQ(trial_back.value(), trial);

  Measurement measurement;
  measurement.outcome = SampleOutcome::kHang;
  measurement.seconds = 1.0 / 3;
  measurement.fastest = 1e-9;
  measurement.iterations = 7;
  measurement.wrong = 12;
  measurement.note = "line\nwith \"anything\" \x01 in it";
  const Result<Measurement> reading_back = DecodeMeasurement(EncodeMeasurement(measurement));
  ASSERT_TRUE(reading_back.ok());
  EXPECT_EQ(reading_back.value().outcome, measurement.outcome);
  EXPECT_EQ(reading_back.value().seconds, measurement.seconds);
  EXPECT_EQ(reading_back.value().wrong, measurement.wrong);
  EXPECT_EQ(reading_back.value().note, measurement.note);

  Subject subject;
  subject.backend = "nccl";
  subject.ranks = 8;
  subject.nodes = 2;
  subject.link_peak = 4.5e11;
  subject.machine.library = "nccl";
  subject.machine.hosts = "n1,n2";
  subject.machine.environment = {{"NCCL_ALGO", "Ring Tree"}, {"NCCL_X", ""}};
  const Result<Subject> subject_back = DecodeSubject(EncodeSubject(subject));
  ASSERT_TRUE(subject_back.ok());
  EXPECT_EQ(subject_back.value().machine, subject.machine);
  EXPECT_EQ(subject_back.value().ranks, 8);
}

TEST(WireTest, DamagedTextIsAnError) {
  const std::string good = EncodeTrial({});
  EXPECT_FALSE(DecodeTrial("").ok());
  EXPECT_FALSE(DecodeTrial(good + " 1").ok());
  EXPECT_FALSE(DecodeTrial(good.substr(0, good.size() - 2)).ok());
  EXPECT_FALSE(DecodeTrial("77" + good.substr(1)).ok());
  EXPECT_FALSE(DecodeMeasurement("0 nan 0 1 0 :").ok());
  EXPECT_FALSE(DecodeMeasurement("0 1e999 0 1 0 :").ok());
  EXPECT_FALSE(DecodeMeasurement("9 1 0 1 0 :").ok());
  EXPECT_FALSE(DecodeMeasurement("0 1 0 1 0 x").ok());
  EXPECT_FALSE(DecodeSubject(": 0 1 1 0 0").ok());
}

TEST(WireTest, OrdersAndIterationTimesComeBackAsTheyWere) {
  Trial trial;
  trial.bytes = 4096;
  trial.only_ranks = 2;
  const Result<Order> same_trial = DecodeOrder(EncodeOrder(trial));
  ASSERT_TRUE(same_trial.ok()) << same_trial.status().message();
  EXPECT_EQ(std::get<Trial>(same_trial.value()), trial);
  const Result<Order> pair = DecodeOrder(EncodeOrder(RankPair{3, 5, uint64_t{1} << 40, 7}));
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  EXPECT_EQ(std::get<RankPair>(pair.value()).second, 5);
  EXPECT_EQ(std::get<RankPair>(pair.value()).bytes, uint64_t{1} << 40);
  const Result<IterationSpec> spec = PresetSpec("ddp", {});
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  const Result<Order> same_spec = DecodeOrder(EncodeOrder(spec.value()));
  ASSERT_TRUE(same_spec.ok()) << same_spec.status().message();
  EXPECT_EQ(std::get<IterationSpec>(same_spec.value()), spec.value());
  const Result<IterationTimes> times = DecodeTimes(EncodeTimes({{0.1, 0.2}, {}, {1e-9}}));
  ASSERT_TRUE(times.ok()) << times.status().message();
  EXPECT_EQ(times.value().steps, (std::vector<double>{0.1, 0.2}));
  EXPECT_TRUE(times.value().compute.empty());
  EXPECT_EQ(times.value().communication, std::vector<double>{1e-9});
  for (const char* wrong : {"", "X1 2 3", "P1 2", "P1 2 3 0", "T", "Inothing"}) {
    EXPECT_FALSE(DecodeOrder(wrong).ok()) << wrong;
  }
  for (const char* wrong : {"", "1", "1000000 0.1 0 0", "0 0", "0 0 0 0", "1 nan 0 0", "-1 0 0"}) {
    EXPECT_FALSE(DecodeTimes(wrong).ok()) << wrong;
  }
}

TEST(PointTest, ATrialAndItsPointAreTheSameThing) {
  Subject subject;
  subject.library = Library::kNccl;
  subject.ranks = 4;
  subject.nodes = 4;
  Trial trial;
  trial.operation = Operation::kReduceScatter;
  trial.bytes = 65536;
  trial.config = {kTree, kLl128, 4};
  trial.environment = "NCCL_BUFFSIZE=1048576";
  const dataset::Point point = PointOf(trial, subject);
  EXPECT_EQ(point.collective, "reducescatter");
  EXPECT_EQ(point.algorithm, "tree");
  EXPECT_EQ(point.protocol, "ll128");
  EXPECT_EQ(point.ranks, 4);
  const Result<Trial> back = TrialOf(point, Library::kNccl);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(PointOf(back.value(), subject), point);
  dataset::Point strange = point;
  strange.algorithm = "rng";
  EXPECT_NE(TrialOf(strange, Library::kNccl).status().message().find("ring"), std::string::npos);
}

TEST(WorkerTest, ArgumentsComeBackAsTheyWere) {
  WorkerOptions options;
  options.ranks.backend = "sim";
  options.ranks.cluster = "h100x8";
  options.ranks.limit = 0.25;
  options.ranks.seed = 42;
  options.ranks.ranks = 8;
  options.choose = false;
  const Result<WorkerOptions> read = ParseWorkerArguments(WorkerArguments(options));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().ranks.backend, "sim");
  EXPECT_EQ(read.value().ranks.cluster, "h100x8");
  EXPECT_EQ(read.value().ranks.limit, 0.25);
  EXPECT_EQ(read.value().ranks.seed, 42u);
  EXPECT_EQ(read.value().ranks.ranks, 8);
  EXPECT_FALSE(read.value().choose);
}

TEST(WorkerTest, ArgumentsThatAreWrongAreErrors) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--backend"},       {"--limit", "x"},  {"--limit", "20"}, {"--ranks", "-1"},
      {"--seed", "seven"}, {"--choose", "2"}, {"--speed", "1"}};
  for (const std::vector<std::string>& arguments : wrong) {
    EXPECT_FALSE(ParseWorkerArguments(arguments).ok()) << arguments.front();
  }
}

}  // namespace
}  // namespace diapason::measure
