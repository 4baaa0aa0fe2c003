// Writes the pages of made-up tuned jobs, one for every verdict, into a folder: job_pages FOLDER.
#include <cstdio>
#include <string>

#include "base/file.h"
#include "job_tune/page.h"
#include "job_tune/testing.h"
#include "report/job_page.h"

namespace {

using diapason::job_tune::JobTuneResult;
using diapason::job_tune::Verdict;

bool Write(const std::string& folder, const std::string& name, const JobTuneResult& result) {
  const std::string html =
      diapason::report::JobPageHtml(diapason::job_tune::PageOf(result, 1.7e9), "nonce");
  const diapason::Status written =
      diapason::WriteFileAtomically(folder + "/" + name + ".html", html);
  if (!written.ok()) std::fprintf(stderr, "%s\n", written.message().c_str());
  return written.ok();
}

// Many communicators, collectives, configurations and launches, and texts that are markup.
JobTuneResult Large() {
  JobTuneResult result = diapason::job_tune::testing::Faster();
  const std::string evil = "</script><img src=x onerror=alert(1)> a very long name without an end ";
  result.command += evil + evil;
  for (auto* profile : {&result.look, &result.by_default, &result.tuned}) {
    profile->roles.push_back(profile->roles[0]);
    profile->roles[1].name = evil;
    for (int i = 0; i < 12; ++i) {
      auto one = profile->classes[1];
      one.role = 1;
      one.band = 8 + i;
      one.times.total = one.times.exposed = 1e-4 * (i + 1);
      profile->classes.push_back(one);
      profile->times.total += one.times.total;
      profile->times.exposed += one.times.exposed;
      profile->iteration += one.times.total;
    }
  }
  for (int i = 0; i < 30; ++i) {
    auto tried = result.contexts[0].tried[1];
    tried.config.channels = i + 1;
    result.contexts[0].tried.push_back(tried);
    result.launches.push_back({8 + i, evil, 3.0, 137, false, "launch.log"});
  }
  return result;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  const std::string folder = words[1];
  bool fine = Write(folder, "large", Large());
  for (const Verdict verdict : {Verdict::kFaster, Verdict::kNothingToGain, Verdict::kNotConfirmed,
                                Verdict::kMetricChanged, Verdict::kUndecided}) {
    std::string name(diapason::job_tune::VerdictName(verdict));
    for (char& one : name) one = one == ' ' ? '-' : one;
    fine = Write(folder, name, diapason::job_tune::testing::WithVerdict(verdict)) && fine;
  }
  JobTuneResult without = diapason::job_tune::testing::Faster();
  for (auto* profile : {&without.look, &without.by_default, &without.tuned}) {
    profile->times = {};
    for (auto& one : profile->classes) one.times = {};
  }
  fine = Write(folder, "no-times", without) && fine;
  fine = Write(folder, "pairs", diapason::job_tune::testing::FasterByPairs()) && fine;
  fine = Write(folder, "empty", {}) && fine;
  return fine ? 0 : 1;
}
