// Simulated jobs with a fault: the analysis has to name the rank that has it.
#include <gtest/gtest.h>

#include "flight_recorder/diagnose.h"
#include "flight_recorder/read.h"
#include "flight_recorder/simulated_job.h"

namespace diapason::flight_recorder {
namespace {

using simulated::Fault;
using simulated::Job;

constexpr uint32_t kJobs = 40;  // of each kind

struct Result {
  std::vector<Finding> findings;
  std::string text;  // for messages
};

Result Analyse(const Job& job, uint32_t seed) {
  FlightRecord record;
  // A third of the dumps has lost its oldest entries, another third has only what is open.
  const size_t keep = seed % 3 == 1 ? 12 : 100000;
  for (int rank = 0; rank < static_cast<int>(job.ranks()); ++rank) {
    if (!job.HasDump(rank)) continue;
    const Status status = ReadDump(-1, job.Dump(rank, keep, seed % 3 == 2),
                                   "nccl_trace_rank_" + std::to_string(rank), &record);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  Result result;
  result.findings = Diagnose(record);
  result.text = "seed " + std::to_string(seed) + ", " + std::to_string(job.ranks()) +
                " ranks, culprit " + std::to_string(job.culprit()) + ", group " +
                std::to_string(job.group()) + "\n";
  for (const Finding& finding : result.findings) {
    result.text += finding.id + ": " + finding.title + "\n";
    for (const std::string& line : finding.evidence) result.text += "  " + line + "\n";
  }
  return result;
}

// Whether "rank 3", "ranks 1, 3 and 5" or "ranks 0 to 4" in a text names the rank.
bool Names(const std::string& text, int rank) {
  for (size_t at = text.find("ank"); at != std::string::npos; at = text.find("ank", at + 1)) {
    size_t i = text.find_first_of(' ', at);
    int last = -1;
    bool range = false;
    while (i != std::string::npos && i < text.size()) {
      if (text[i] >= '0' && text[i] <= '9') {
        const int number = std::atoi(text.c_str() + i);
        if (number == rank || (range && last <= rank && rank <= number)) return true;
        last = number;
        range = false;
        while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
      } else if (text.compare(i, 4, " to ") == 0) {
        range = true;
        i += 4;
      } else if (text.compare(i, 5, " and ") == 0) {
        i += 5;
      } else if (text[i] == ' ' || text[i] == ',') {
        ++i;
      } else {
        break;
      }
    }
  }
  return false;
}

void ExpectFirst(Fault fault, const std::string& id) {
  for (uint32_t seed = 0; seed < kJobs; ++seed) {
    const Job job(seed * 7919 + 13, fault);
    const Result result = Analyse(job, seed);
    ASSERT_FALSE(result.findings.empty()) << result.text;
    EXPECT_EQ(result.findings[0].id, id) << result.text;
    EXPECT_TRUE(Names(result.findings[0].title, job.culprit())) << result.text;
    if (testing::Test::HasFailure()) return;
  }
}

TEST(SimulatedJobs, HealthyOnesHaveNoFinding) {
  for (uint32_t seed = 0; seed < kJobs; ++seed) {
    const Result result = Analyse(Job(seed, Fault::kNone), seed);
    ASSERT_TRUE(result.findings.empty()) << result.text;
  }
}

TEST(SimulatedJobs, EarlierDumpsAccuseNoRank) {
  // With entries of completed collectives: without them an earlier dump looks like a rank that
  // stopped.
  uint32_t told = 0;
  for (uint32_t seed = 0; seed < kJobs; ++seed) {
    const Result result = Analyse(Job(seed, Fault::kEarlierDump), 3 * seed);
    for (const Finding& finding : result.findings) {
      ASSERT_NE(finding.severity, Severity::kError) << result.text;
      told += finding.id == "flight.older-dump" ? 1 : 0;
    }
  }
  EXPECT_GT(told, kJobs / 2);
}

TEST(SimulatedJobs, RankThatStopped) {
  for (uint32_t seed = 0; seed < 2 * kJobs; ++seed) {
    const Job job(seed, Fault::kStopped);
    const Result result = Analyse(job, seed);
    ASSERT_FALSE(result.findings.empty()) << result.text;
    ASSERT_EQ(result.findings[0].id, "flight.behind") << result.text;
    ASSERT_EQ(result.findings[0].severity, Severity::kError);
    const std::string start = "Rank " + std::to_string(job.culprit()) + " is the root";
    ASSERT_EQ(result.findings[0].title.substr(0, start.size()), start) << result.text;
    ASSERT_EQ(result.findings.size(), 1U) << result.text;
  }
}

TEST(SimulatedJobs, RankWithoutDump) {
  ExpectFirst(Fault::kStoppedWithoutDump, "flight.missing-dump");
}

TEST(SimulatedJobs, Mismatches) {
  ExpectFirst(Fault::kWrongSize, "flight.mismatch");
  ExpectFirst(Fault::kWrongType, "flight.mismatch");
  ExpectFirst(Fault::kWrongOperation, "flight.mismatch");
}

TEST(SimulatedJobs, MajorityNamesTheOddRank) {
  for (uint32_t seed = 0; seed < kJobs; ++seed) {
    const Job job(seed, Fault::kWrongSize);
    if (job.GroupSize() == 2) continue;
    const Result result = Analyse(job, seed);
    const std::string start = "Rank " + std::to_string(job.culprit()) + " differs from ranks ";
    ASSERT_EQ(result.findings[0].title.substr(0, start.size()), start) << result.text;
  }
}

TEST(SimulatedJobs, MissingSend) { ExpectFirst(Fault::kMissingSend, "flight.behind"); }

TEST(SimulatedJobs, CrossedOrder) { ExpectFirst(Fault::kCrossedOrder, "flight.deadlock"); }

TEST(SimulatedJobs, GpuThatStopped) { ExpectFirst(Fault::kGpu, "flight.gpu-stuck"); }

TEST(SimulatedJobs, NetworkIsAccusedAlone) {
  for (uint32_t seed = 0; seed < kJobs; ++seed) {
    const Job job(seed, Fault::kNetwork);
    const Result result = Analyse(job, seed);
    ASSERT_EQ(result.findings.size(), 1U) << result.text;
    ASSERT_EQ(result.findings[0].id, "flight.network") << result.text;
    const std::string group = "of group " + std::to_string(job.group()) + " (";
    ASSERT_NE(result.findings[0].title.find(group), std::string::npos) << result.text;
  }
}

}  // namespace
}  // namespace diapason::flight_recorder
