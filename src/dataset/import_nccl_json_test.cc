#include <gtest/gtest.h>

#include "dataset/import.h"

namespace diapason::dataset {
namespace {

const char kHead[] =
    "{\"version\":\"2.17.9\",\"args\":[\"./build/all_gather_perf\",\"-J\",\"x\"],\"nccl_version\":"
    "22809,\"devices\":[{\"rank\":0,\"hostname\":\"n1\"},{\"rank\":1,\"hostname\":\"n2\"}],"
    "\"results\":[";
const char kRow[] =
    "{\"size\":1024,\"count\":128,\"type\":\"float\",\"redop\":\"none\",\"root\":-1,"
    "\"out_of_place\":{\"time\":12.5,\"alg_bw\":0.1,\"bus_bw\":0.1,\"nwrong\":0},"
    "\"in_place\":{\"time\":\"11.0\",\"nwrong\":2}}";

TEST(ImportNcclJsonTest, EveryResultIsASampleInAndOutOfPlace) {
  const Result<Import> import = ImportText(std::string(kHead) + kRow + "]}", "r.json", {});
  ASSERT_TRUE(import.ok()) << import.status().message();
  EXPECT_EQ(import.value().format, "nccl-tests JSON");
  const WholeRun& run = import.value().runs.at(0);
  EXPECT_EQ(run.run.machine.library_version, "2.28.9");
  EXPECT_EQ(run.run.machine.hosts, "n1,n2");
  ASSERT_EQ(run.samples.size(), 2u);
  EXPECT_EQ(run.samples[0].point.collective, "allgather");
  EXPECT_EQ(run.samples[0].point.ranks, 2);
  EXPECT_EQ(run.samples[0].point.nodes, 2);
  EXPECT_NEAR(run.samples[0].seconds, 12.5e-6, 1e-15);
  EXPECT_TRUE(run.samples[1].point.in_place);
  EXPECT_EQ(run.samples[1].outcome, SampleOutcome::kWrong);
}

TEST(ImportNcclJsonTest, TimesOfSingleIterationsAreSamples) {
  const std::string row =
      "{\"size\":64,\"type\":\"half\",\"out_of_place\":{\"time\":2,\"times_us\":[1.5,2,2.5]}}";
  const Result<Import> import = ImportText(std::string(kHead) + row + "]}", "r.json", {});
  ASSERT_TRUE(import.ok()) << import.status().message();
  ASSERT_EQ(import.value().runs.at(0).samples.size(), 3u);
  EXPECT_NEAR(import.value().runs[0].samples[2].seconds, 2.5e-6, 1e-15);
  EXPECT_EQ(import.value().runs[0].samples[2].round, 2);
}

TEST(ImportNcclJsonTest, ACutFileGivesWhatIsWhole) {
  const std::string text =
      std::string(kHead) + kRow + ",{\"size\":2048,\"type\":\"float\",\"out_of";
  const Result<Import> import = ImportText(text, "r.json", {});
  ASSERT_TRUE(import.ok()) << import.status().message();
  EXPECT_EQ(import.value().runs.at(0).samples.size(), 2u);
  EXPECT_NE(import.value().messages.back().find("the file is cut"), std::string::npos);
}

TEST(ImportNcclJsonTest, ResultsWithoutATimeAreLeftOutAndCounted) {
  const std::string rows = std::string(kRow) + ",{\"size\":8,\"out_of_place\":{}},7,{\"size\":-1}";
  const Result<Import> import = ImportText(std::string(kHead) + rows + "]}", "r.json", {});
  ASSERT_TRUE(import.ok());
  EXPECT_EQ(import.value().messages.at(0),
            "3 results left out, the first is result 2: it has no time");
}

}  // namespace
}  // namespace diapason::dataset
