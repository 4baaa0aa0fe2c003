#include "dataset/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/file.h"
#include "dataset/import.h"
#include "dataset/limits.h"

namespace diapason::dataset {
namespace {

StoreContents Load(const std::string& fixture, const ImportOptions& options = {}) {
  const std::string path = DIAPASON_SOURCE_DIR "/tests/data/" + fixture;
  Result<Import> import = ImportText(ReadFile(path, 1 << 24).value(), path, options);
  EXPECT_TRUE(import.ok()) << import.status().message();
  return ContentsOf(std::move(import).value());
}

const Finding* Find(const std::vector<Finding>& findings, const std::string& kind) {
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& finding) { return finding.id == kind; });
  return found == findings.end() ? nullptr : &*found;
}

// A store without problems: eight repeats of two configurations that differ.
StoreContents Good() {
  StoreContents contents;
  contents.runs.resize(1);
  contents.runs[0].id = "good";
  contents.runs[0].state = dataset::SampleRun::State::kDone;
  contents.runs[0].machine.gpu = "8x NVIDIA A100-SXM4-80GB";
  for (uint64_t bytes = 1 << 16; bytes <= 1 << 24; bytes *= 2) {
    for (int round = 0; round < 8; ++round) {
      for (const char* algorithm : {"ring", "tree"}) {
        Sample sample;
        sample.point.collective = "allreduce";
        sample.point.bytes = bytes;
        sample.point.ranks = 8;
        sample.point.algorithm = algorithm;
        sample.point.protocol = "simple";
        sample.round = round;
        sample.wrong = 0;
        sample.seconds =
            (algorithm[0] == 'r' ? 1 : 1.3) * (2e-5 + double(bytes) / 1e11) * (1 + 0.002 * round);
        contents.records.push_back({0, sample});
      }
    }
  }
  return contents;
}

TEST(CheckTest, GoodDataHaveNoFindings) {
  EXPECT_TRUE(Check(Good()).empty());
  EXPECT_TRUE(Check({}).empty());
}

TEST(CheckTest, ProgramsThatRanAlone) {
  const std::vector<Finding> findings = Check(Load("nccl-tests/eight_independent_1gpu_runs.out"));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].severity, Severity::kError);
  for (const char* kind : {"independent-runs", "one-rank", "above-memory"}) {
    const Finding* finding = Find(findings, kind);
    ASSERT_NE(finding, nullptr) << kind;
    EXPECT_EQ(finding->severity, Severity::kError);
    ASSERT_FALSE(finding->evidence.empty());
    EXPECT_NE(finding->evidence[0].find("eight_independent"), std::string::npos);
    EXPECT_FALSE(finding->action.empty());
  }
}

TEST(CheckTest, RealLogsAreNotAccused) {
  for (const char* log : {"a100_8gpu_allreduce.txt", "mi355x_8gpu_allreduce.log",
                          "h100_pair_001_006.log", "l40s_4gpu_ring.txt"}) {
    for (const Finding& finding : Check(Load(std::string("nccl-tests/") + log))) {
      EXPECT_EQ(finding.severity, Severity::kNote) << log << ": " << finding.title;
    }
  }
}

TEST(CheckTest, ATestThatDidNotEnd) {
  const std::vector<Finding> findings = Check(Load("nccl-tests/h100_pair_002_008.log"));
  const Finding* finding = Find(findings, "interrupted");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->evidence[0].find("sendrecv"), std::string::npos);
}

TEST(CheckTest, FasterThanTheLinks) {
  StoreContents contents = Good();
  contents.records[0].sample.seconds = 1e-7;
  const std::vector<Finding> findings = Check(contents);
  ASSERT_NE(Find(findings, "too-fast"), nullptr);
  EXPECT_EQ(Find(findings, "too-fast")->severity, Severity::kError);
  contents.runs[0].machine.simulated = true;  // a model may have any links
  EXPECT_EQ(Find(Check(contents), "too-fast"), nullptr);
}

TEST(CheckTest, RepeatsThatDisagree) {
  StoreContents contents = Good();
  contents.records[4].sample.seconds *= 3;
  const std::vector<Finding> findings = Check(contents);
  ASSERT_NE(Find(findings, "repeats-disagree"), nullptr);
  EXPECT_EQ(Find(findings, "repeats-disagree")->evidence.size(), 1u);
}

TEST(CheckTest, WrongResultsAndFailures) {
  StoreContents contents = Good();
  contents.records[0].sample.outcome = SampleOutcome::kWrong;
  contents.records[0].sample.wrong = 12;
  contents.records[1].sample.outcome = SampleOutcome::kHang;
  contents.records[1].sample.note = "60 s";
  const std::vector<Finding> findings = Check(contents);
  ASSERT_NE(Find(findings, "wrong-results"), nullptr);
  EXPECT_NE(Find(findings, "wrong-results")->evidence[0].find("12 elements"), std::string::npos);
  ASSERT_NE(Find(findings, "failures"), nullptr);
}

TEST(CheckTest, OneSampleAndCoarseDigits) {
  StoreContents contents = Good();
  std::erase_if(contents.records, [](const StoredSample& record) {
    return record.sample.point.bytes == 1 << 16 && record.sample.round > 0;
  });
  EXPECT_EQ(Find(Check(contents), "single-samples")->title, "2 of 18 cells have one sample");
  EXPECT_EQ(Find(Check(contents), "too-coarse"), nullptr);
  for (StoredSample& record : contents.records) record.sample.coarse = 0.2;
  ASSERT_NE(Find(Check(contents), "too-coarse"), nullptr);
}

TEST(CheckTest, TheGridsHundredths) {
  ImportOptions options;
  options.library = "rccl";
  const std::vector<Finding> findings =
      Check(Load("measurements/mi355x_allreduce_1n_2n.csv", options));
  const Finding* coarse = Find(findings, "too-coarse");
  ASSERT_NE(coarse, nullptr);
  EXPECT_NE(coarse->evidence[0].find("4KiB"), std::string::npos);
  EXPECT_NE(Find(findings, "repeats-disagree"), nullptr);
}

TEST(CheckTest, Mixtures) {
  StoreContents contents = Good();
  const auto second = [&](const std::function<void(MachineInfo*)>& change) {
    StoreContents mixed = contents;
    mixed.runs.push_back(contents.runs[0]);
    change(&mixed.runs[1].machine);
    for (StoredSample record : contents.records) {
      record.run = 1;
      mixed.records.push_back(record);
    }
    return Check(mixed);
  };
  EXPECT_TRUE(second([](MachineInfo*) {}).empty());
  EXPECT_NE(
      Find(second([](MachineInfo* machine) { machine->simulated = true; }), "simulated-mixed"),
      nullptr);
  EXPECT_NE(Find(second([](MachineInfo* machine) { machine->library_version = "2.1"; }),
                 "libraries-mixed"),
            nullptr);
  EXPECT_NE(
      Find(second([](MachineInfo* machine) { machine->gpu = "8x NVIDIA H100"; }), "machines-mixed"),
      nullptr);
}

TEST(LimitsTest, NamesDoNotHideInEachOther) {
  EXPECT_EQ(LimitsOf("8x NVIDIA A100-SXM4-80GB")->link, 300e9);
  EXPECT_EQ(LimitsOf("2x NVIDIA A10")->link, 32e9);
  EXPECT_EQ(LimitsOf("NVIDIA L40S")->memory, 864e9);
  EXPECT_EQ(LimitsOf("NVIDIA L4")->memory, 300e9);
  EXPECT_EQ(LimitsOf("8x AMD Instinct MI355X")->link, 538e9);
  EXPECT_EQ(LimitsOf("NVIDIA H100 80GB HBM3")->link, 450e9);
  EXPECT_EQ(LimitsOf("NVIDIA H200")->memory, 4800e9);
  EXPECT_FALSE(LimitsOf("").has_value());
  EXPECT_FALSE(LimitsOf("some CPU").has_value());
}

}  // namespace
}  // namespace diapason::dataset
