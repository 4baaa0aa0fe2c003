#include "report/job_page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace diapason::report {
namespace {

JobPage Small() {
  JobPage page;
  page.title = "train.py";
  page.version = "1.2.3";
  page.made = 1700000000;
  page.verdict = "faster";
  page.headline = "an iteration is faster";
  page.classes = {"allreduce 32 KiB"};
  page.settings.push_back(
      {"default", "default: 10 ms", 0.01, true, 0.004, 0.002, {{0, 0.004}}, 0, 0});
  page.settings.push_back({"tuned", "tuned: 8 ms", 0.008, false, 0, 0, {}, 0.0075, 0.0085});
  page.rows.push_back({"compute", false, {0.004, -1}});
  page.gain = {1.25, 1.2, 1.3};
  page.gain_launches = 3;
  page.verified.push_back({2, {1.25, 1.2, 1.3}, 10, 300, 0.01, 0.008, ""});
  page.contexts.push_back(
      {"allreduce", "32 calls", "tree/simple", true, {{"tree", {1.3, 1.2, 1.4}, 4, true}}});
  page.launches.push_back({1, "look", 12.5, "ended", false, "launch-1.log"});
  return page;
}

TEST(JobPage, HasAllFiguresInMicroseconds) {
  const nlohmann::json data = nlohmann::json::parse(JobPageJson(Small()));
  EXPECT_EQ(data["made"], 1700000000);
  EXPECT_EQ(data["settings"][0]["us"], 10000);
  EXPECT_EQ(data["settings"][0]["exposed"][0][1], 4000);
  EXPECT_TRUE(data["settings"][1]["compute"].is_null()) << "not known";
  EXPECT_EQ(data["settings"][1]["low"], 7500);
  EXPECT_TRUE(data["rows"][0]["us"][1].is_null());
  EXPECT_EQ(data["gain"]["value"], 1.25);
  EXPECT_EQ(data["contexts"][0]["tried"][0]["chosen"], true);
  EXPECT_EQ(data["launches"][0]["log"], "launch-1.log");
  JobPage unknown = Small();
  unknown.gain = {};
  EXPECT_TRUE(nlohmann::json::parse(JobPageJson(unknown))["gain"].is_null());
}

TEST(JobPage, TextsStayTextsAndNothingIsFetched) {
  const std::string evil = "</script><script>alert(1)</script><img src=x>@DATA@";
  JobPage page = Small();
  page.title = page.headline = page.metric = page.use = evil;
  page.contexts[0].label = page.launches[0].log = page.settings[0].title = evil;
  page.facts = {{evil, evil}};
  page.notes = {evil};
  const std::string html = JobPageHtml(page, "THENONCE");
  size_t scripts = 0;
  for (size_t at = html.find("<script"); at != std::string::npos;
       at = html.find("<script", at + 1)) {
    ++scripts;
  }
  EXPECT_EQ(scripts, 2u);
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(html.find("src=\""), std::string::npos);
}

TEST(JobPage, LargeResultsAreCutAndSaySo) {
  JobPage page = Small();
  page.launches.resize(1000, page.launches[0]);
  page.launches[0].log = std::string(100000, 'x');
  for (int i = 0; i < 300; ++i) page.contexts.push_back(page.contexts[0]);
  for (JobPageContext& one : page.contexts) one.tried.resize(100, one.tried[0]);
  const std::string html = JobPageHtml(page, "N");
  EXPECT_LT(html.size(), kMostPageBytes);
  EXPECT_NE(html.find("left out here: 600 of 1000 launches"), std::string::npos);
}

}  // namespace
}  // namespace diapason::report
