#include "report/page.h"

#include <gtest/gtest.h>

#include <cmath>

#include "report/json_writer.h"

namespace diapason::report {
namespace {

TEST(JsonWriterTest, ListsObjectsAndNumbers) {
  JsonWriter json;
  json.BeginObject();
  json.Number("a", 12.345678);
  json.Number("b", std::nan(""));
  json.Bool("c", true);
  json.Key("d");
  json.BeginArray();
  json.Unsigned(UINT64_MAX);
  json.Integer(-3);
  json.BeginArray();
  json.EndArray();
  json.EndArray();
  json.Texts("e", {"x", "y"});
  json.EndObject();
  EXPECT_EQ(json.text(),
            "{\"a\":12.346,\"b\":null,\"c\":true,\"d\":[18446744073709551615,-3,[]],\"e\":[\"x\","
            "\"y\"]}");
}

PageData Hostile() {
  PageInput input;
  const std::string evil = "</script><script>alert(1)</script>@DATA@@NONCE@<img src=x>";
  input.title = evil;
  dataset::SampleRun run;
  run.id = run.origin = evil;
  run.source = "sweep";
  run.machine.library = run.machine.gpu = evil;
  run.machine.environment[evil] = evil;
  input.contents.runs.push_back(run);
  dataset::Sample sample;
  sample.point.collective = "allreduce";
  sample.point.workload = evil;
  sample.point.environment = evil;
  sample.point.bytes = 1024;
  sample.seconds = 1;
  input.contents.records.push_back({0, sample});
  sample.outcome = dataset::SampleOutcome::kCrash;
  sample.note = evil;
  input.contents.records.push_back({0, sample});
  input.doctor.host = evil;
  input.doctor.findings.push_back({evil, Severity::kError, evil, {evil}, evil});
  return MakePageData(std::move(input));
}

size_t CountOf(const std::string& text, std::string_view what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(PageTest, HostileTextsStayTexts) {
  const std::string page = PageHtml(Hostile(), "THENONCE");
  EXPECT_EQ(CountOf(page, "<script"), 2u);
  EXPECT_EQ(CountOf(page, "</script"), 2u);
  EXPECT_EQ(CountOf(page, "<img"), 0u);
  // What looks like a mark of the template is not filled in.
  EXPECT_EQ(CountOf(page, "{\"title\""), 1u);
  EXPECT_EQ(CountOf(page, "THENONCE"), 5u);
}

TEST(PageTest, NothingIsFetched) {
  const std::string page = PageHtml(Hostile(), "N");
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(page.find("src=\""), std::string::npos);
  EXPECT_EQ(page.find("@import"), std::string::npos);
  EXPECT_EQ(page.find("url(http"), std::string::npos);
}

TEST(PageTest, TheLeadSaysWhatCameOfIt) {
  PageData data;
  EXPECT_EQ(LeadText(data), "0 journals, no measurements.");
  data.samples = 10;
  data.places.push_back({"nccl", "2.28.9", "4x H200", "", "", "", "", false, 1, 10, 0, 0});
  data.headline.left_alone = 3;
  EXPECT_EQ(LeadText(data),
            "10 samples of nccl 2.28.9 on 4x H200. The data support no change for collectives.");
  data.headline.sizes = 2;
  data.headline.verified = true;
  data.headline.gain = {20, 1.25, {1.2, 1.3}};
  data.simulated = 10;
  EXPECT_EQ(LeadText(data),
            "Simulated: 10 samples of nccl 2.28.9 on 4x H200. Verified, default and tuned in "
            "turns: collectives are 1.25 times as fast as the library's default (95 %: 1.20 to "
            "1.30; geometric mean of 2 sizes).");
  data.headline.changed_extent = {2, 1};
  data.headline.too_few = 1;
  EXPECT_NE(LeadText(data).find("(geometric mean of 2 cases, 1 size in each of 2 contexts; few "
                                "samples, so no 95 % interval)"),
            std::string::npos)
      << LeadText(data);
  data.headline = {};
  data.headline.left_alone = data.headline.only_default = 3;
  EXPECT_NE(LeadText(data).find("Of collectives nothing but the library's default was measured."),
            std::string::npos);
}

}  // namespace
}  // namespace diapason::report
