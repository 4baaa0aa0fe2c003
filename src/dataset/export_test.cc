#include "dataset/export.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "dataset/import.h"
#include "dataset/summary.h"

namespace diapason::dataset {
namespace {

Sample MakeSample(const std::string& algorithm, int channels, double seconds) {
  Sample sample;
  sample.point.collective = "allreduce";
  sample.point.bytes = 1 << 20;
  sample.point.ranks = 8;
  sample.point.algorithm = algorithm;
  sample.point.protocol = algorithm.empty() ? "" : "simple";
  sample.point.channels = channels;
  sample.seconds = seconds;
  return sample;
}

StoreContents Of(const std::vector<Sample>& samples, bool simulated = false) {
  StoreContents contents;
  contents.runs.resize(1);
  contents.runs[0].id = "r";
  contents.runs[0].machine.simulated = simulated;
  for (const Sample& sample : samples) contents.records.push_back({0, sample});
  return contents;
}

std::vector<std::string> Optimized(const StoreContents& contents, double tolerance = 0.05) {
  std::vector<std::string> notes;
  const Result<std::string> text = ExportOptimized(contents, tolerance, &notes);
  EXPECT_TRUE(text.ok()) << text.status().message();
  std::vector<std::string> lines;
  for (const std::string_view line : Split(text.value(), '\n')) lines.emplace_back(line);
  return lines;
}

TEST(ExportCsvTest, NothingIsLost) {
  StoreContents contents;
  dataset::SampleRun run;
  run.id = "run 1, with \"everything\"";
  run.source = "bench";
  run.origin = "a,b\n\"c\"";
  run.started = 1700000000.123456789;
  run.state = dataset::SampleRun::State::kInterrupted;
  run.plan = "x\r\ny";
  run.machine = {"nccl",     "2.28.9",  "8x H100",
                 "570",      "2 nodes", "a,b",
                 "diapason", true,      {{"A", "1\n2"}, {"B", "\\"}}};
  contents.runs = {run, run};
  contents.runs[1].id = "without samples";
  Sample sample = MakeSample("ring", 4, 1.0 / 3e5);
  sample.coarse = 1e-17;
  sample.round = 3;
  sample.iterations = 20;
  sample.wrong = 0;
  sample.at = 1700000001.1;
  sample.point.environment = "A=1 B=\"x\",y";
  sample.point.workload = "ddp, 3 layers";
  sample.point.kind = Point::Kind::kIteration;
  Sample failed = MakeSample("", 0, std::nan(""));
  failed.outcome = SampleOutcome::kCrash;
  failed.note = "signal 11,\n\"core\"";
  contents.records = {{0, sample}, {0, failed}};

  const std::string text = ExportCsv(contents);
  const Result<Import> back = ImportText(text, "x.csv", {});
  ASSERT_TRUE(back.ok()) << back.status().message();
  const Import& import = back.value();
  ASSERT_EQ(import.runs.size(), 2u);
  EXPECT_EQ(import.runs[0].run.id, run.id);
  EXPECT_EQ(import.runs[0].run.origin, run.origin);
  EXPECT_EQ(import.runs[0].run.started, run.started);
  EXPECT_EQ(import.runs[0].run.state, run.state);
  EXPECT_EQ(import.runs[0].run.plan, run.plan);
  EXPECT_EQ(import.runs[0].run.machine, run.machine);
  EXPECT_TRUE(import.runs[1].samples.empty());
  ASSERT_EQ(import.runs[0].samples.size(), 2u);
  EXPECT_EQ(import.runs[0].samples[0].point, sample.point);
  EXPECT_EQ(import.runs[0].samples[0].seconds, sample.seconds);
  EXPECT_EQ(import.runs[0].samples[0].coarse, sample.coarse);
  EXPECT_EQ(import.runs[0].samples[0].round, sample.round);
  EXPECT_EQ(import.runs[0].samples[1].note, failed.note);
  EXPECT_TRUE(std::isnan(import.runs[0].samples[1].seconds));
}

TEST(ExportCsvTest, ATableThatWasChangedIsAnError) {
  const std::string text = ExportCsv(Of({MakeSample("ring", 4, 1e-5)}));
  const auto error = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const size_t at = changed.rfind(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    return ImportText(changed, "x.csv", {}).status().message();
  };
  EXPECT_EQ(error("simple", "simple"), "");
  EXPECT_NE(error("busbw_gbs", "mood").find("columns"), std::string::npos);
  EXPECT_NE(error("fine", "great").find("'great' under 'outcome'"), std::string::npos);
  EXPECT_NE(error(",8,f32", ",-8,f32").find("under 'ranks'"), std::string::npos);
  EXPECT_NE(error("1e-05", "soon").find("under 'seconds'"), std::string::npos);
  EXPECT_NE(error("running", "walking").find("under 'state'"), std::string::npos);
}

TEST(ExportOptimizedTest, TheFewestChannelsAmongTheGood) {
  const StoreContents contents =
      Of({MakeSample("ring", 32, 1.00e-4), MakeSample("ring", 8, 1.03e-4),
          MakeSample("tree", 2, 1.50e-4), MakeSample("", 0, 1.20e-4)});
  EXPECT_EQ(Optimized(contents)[1].substr(0, 40), "all_reduce,1,8,1048576,RING,SIMPLE,8,103");
  EXPECT_NE(Optimized(contents, 0.01)[1].find("RING,SIMPLE,32,"), std::string::npos);
  EXPECT_NE(Optimized(contents, 0.40)[1].find("DEFAULT,DEFAULT,-1,"), std::string::npos);
  EXPECT_EQ(Optimized(contents).size(), 3u);
}

TEST(ExportOptimizedTest, BothHalvesInTheirColumns) {
  Sample in_place = MakeSample("ring", 8, 2e-4);
  in_place.point.in_place = true;
  const std::vector<std::string> lines = Optimized(Of({MakeSample("ring", 8, 1e-4), in_place}));
  EXPECT_EQ(lines[0],
            "collective,num_nodes,num_gpus,size_bytes,algo,proto,nchannels,time_oop,busbw_oop,"
            "time_ip,busbw_ip");
  EXPECT_EQ(lines[1], "all_reduce,1,8,1048576,RING,SIMPLE,8,100,18.3501,200,9.17504");
  // Export and import round-trip.
  std::vector<std::string> notes;
  const std::string text =
      ExportOptimized(Of({MakeSample("ring", 8, 1e-4), in_place}), 0.05, &notes).value();
  const Result<Import> back = ImportText(text, "optimized_metrics.csv", {});
  ASSERT_TRUE(back.ok()) << back.status().message();
  ASSERT_EQ(back.value().runs[0].samples.size(), 2u);
  EXPECT_EQ(back.value().runs[0].samples[1].point, in_place.point);
  EXPECT_DOUBLE_EQ(back.value().runs[0].samples[1].seconds, 2e-4);
}

TEST(ExportOptimizedTest, FailuresAndEnvironmentsDoNotWin) {
  Sample wrong = MakeSample("tree", 1, 1e-6);
  wrong.outcome = SampleOutcome::kWrong;
  Sample special = MakeSample("ring", 1, 1e-6);
  special.point.environment = "NCCL_X=1";
  std::vector<std::string> notes;
  const std::string text =
      ExportOptimized(Of({MakeSample("ring", 8, 1e-4), wrong, special}), 0.05, &notes).value();
  EXPECT_NE(text.find("RING,SIMPLE,8,"), std::string::npos);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("environment"), std::string::npos);
}

TEST(ExportOptimizedTest, SimulatedIsSaidAndNeverMixed) {
  EXPECT_TRUE(Optimized(Of({MakeSample("ring", 8, 1e-4)}, true))[0].ends_with(",simulated"));
  EXPECT_TRUE(Optimized(Of({MakeSample("ring", 8, 1e-4)}, true))[1].ends_with(",1"));
  StoreContents mixed = Of({MakeSample("ring", 8, 1e-4)}, true);
  mixed.runs.emplace_back();
  mixed.records.push_back({1, MakeSample("ring", 8, 1e-4)});
  std::vector<std::string> notes;
  EXPECT_FALSE(ExportOptimized(mixed, 0.05, &notes).ok());
}

TEST(SummaryTest, BestTieAndDefault) {
  std::vector<Sample> samples;
  for (const double noise : {0.99, 1.0, 1.01, 1.0, 0.995, 1.005, 1.0, 1.0}) {
    samples.push_back(MakeSample("ring", 8, 1.0e-4 * noise));
    samples.push_back(MakeSample("tree", 8, 1.002e-4 * noise));
    samples.push_back(MakeSample("", 0, 2e-4 * noise));
  }
  Sample hung = MakeSample("nvls", 8, std::nan(""));
  hung.outcome = SampleOutcome::kHang;
  samples.push_back(hung);
  const std::vector<ConfigGroup> groups = Summarise(Of(samples));
  ASSERT_EQ(groups.size(), 1u);
  const ConfigGroup& group = groups[0];
  ASSERT_EQ(group.entries.size(), 4u);
  EXPECT_EQ(group.entries[0].point.algorithm, "ring");
  EXPECT_TRUE(group.TiesWithBest(1));
  EXPECT_EQ(group.standard, 2u);
  EXPECT_FALSE(group.TiesWithBest(2));
  EXPECT_FALSE(group.entries[3].fine());
  EXPECT_EQ(group.entries[3].failure, SampleOutcome::kHang);
  EXPECT_EQ(group.samples, 25u);
}

TEST(SummaryTest, CoarseDigitsWidenTheInterval) {
  Sample a = MakeSample("ring", 8, 1.00e-4);
  Sample b = MakeSample("tree", 8, 1.02e-4);
  EXPECT_FALSE(Summarise(Of({a, b}))[0].TiesWithBest(1));
  a.coarse = b.coarse = 0.015;
  EXPECT_TRUE(Summarise(Of({a, b}))[0].TiesWithBest(1));
}

TEST(SummaryTest, SimulatedAndMeasuredNeverCompete) {
  StoreContents mixed = Of({MakeSample("ring", 8, 1e-4)}, true);
  mixed.runs.emplace_back();
  mixed.records.push_back({1, MakeSample("ring", 8, 2e-4)});
  EXPECT_EQ(Summarise(mixed).size(), 2u);
}

}  // namespace
}  // namespace diapason::dataset
