// The checks of diapason's own settings, and of what loading any tuner turns off.
#include <gtest/gtest.h>

#include <fstream>

#include "base/temporary_file.h"
#include "base/text.h"
#include "knobs/check.h"
#include "knobs/files/read_file.h"

namespace diapason::knobs {
namespace {

std::string Found(const std::string& text, int version, const RootFs* tree = nullptr,
                  Library library = Library::kNccl) {
  std::vector<std::string> ids;
  for (const Finding& finding : CheckAssignments(ReadVariables(text, "f", {}).assignments,
                                                 {library, version, tree}, Catalogue::BuiltIn())) {
    if (finding.severity == Severity::kFine) continue;
    EXPECT_FALSE(finding.evidence.empty()) << finding.title;
    ids.push_back(std::string(SeverityName(finding.severity)) + " " + finding.id);
  }
  return Join(ids, ", ");
}

constexpr const char* kBothHalves =
    "NCCL_TUNER_PLUGIN=diapason\nNCCL_PROFILER_PLUGIN=diapason\nDIAPASON_MODE=learn\n";

TEST(CheckOwnSettings, WhatKeepsAJobFromLearning) {
  EXPECT_EQ(Found(kBothHalves, 22809), "");
  EXPECT_EQ(Found(kBothHalves, 22703), "warning env.old-library");
  EXPECT_EQ(Found(kBothHalves, 23102), "warning env.ras-learning");
  EXPECT_EQ(Found(std::string(kBothHalves) + "NCCL_RAS_ENABLE=0\n", 23102), "");
  EXPECT_EQ(Found("NCCL_TUNER_PLUGIN=diapason\nDIAPASON_MODE=learn\n", 22809),
            "warning env.no-profiler");
  EXPECT_EQ(Found("NCCL_TUNER_PLUGIN=diapason\nNCCL_TUNER_EPS=0.1\n", 22809),
            "warning env.no-learning");
}

TEST(CheckOwnSettings, AnOverlapFlagWithoutItsFile) {
  const TemporaryFolder folder;
  const RootFs tree;
  const std::string policy = folder.path() + "/p.conf";
  std::ofstream(policy) << "\n";
  const std::string job =
      "NCCL_TUNER_PLUGIN=diapason\nDIAPASON_OVERLAP=1\nDIAPASON_POLICY=" + policy + "\n";
  EXPECT_EQ(Found(job, 22809, &tree), "error env.overlap-file");
  EXPECT_EQ(Found(job, 22809), "") << "not of this machine";
  std::ofstream(folder.path() + "/p.overlap.conf") << "\n";
  EXPECT_EQ(Found(job, 22809, &tree), "");
}

TEST(CheckTuner, AnyTunerTurnsOffTheChoiceOfNvls) {
  for (const char* value : {"EFFICIENCY", "efficiency", "ZERO|EFFICIENCY"}) {
    const std::string job = std::string("NCCL_CTA_POLICY='") + value + "'\n";
    EXPECT_EQ(Found(job, 22907), "") << value;
    EXPECT_EQ(Found(job + "NCCL_TUNER_PLUGIN=none\n", 22907), "") << value;
    for (const char* plugin : {"NCCL_TUNER_PLUGIN=example", "NCCL_ENV_PLUGIN=diapason"}) {
      EXPECT_EQ(Found(job + plugin + "\n", 22907), "warning env.fights-tuner") << value << plugin;
    }
  }
  EXPECT_EQ(Found("NCCL_CTA_POLICY=1\nNCCL_TUNER_PLUGIN=example\n", 22809),
            "warning env.fights-tuner");
  EXPECT_EQ(Found("NCCL_CTA_POLICY=2\nNCCL_TUNER_PLUGIN=example\n", 22809), "");
  EXPECT_EQ(Found("NCCL_CTA_POLICY=1\nNCCL_TUNER_PLUGIN=example\n", 22803, nullptr, Library::kRccl),
            "");
}

}  // namespace
}  // namespace diapason::knobs
