#pragma once

// Samples of runs for the tests of the report's page.

#include <string>
#include <utility>

#include "report/page.h"
#include "report/page_data.h"

namespace diapason::report {

using dataset::Point;
using dataset::SampleOutcome;

inline Point At(uint64_t bytes, const char* algorithm = "", const char* protocol = "",
                int channels = 0) {
  Point point;
  point.collective = "allreduce";
  point.bytes = bytes;
  point.ranks = 4;
  point.algorithm = algorithm;
  point.protocol = protocol;
  point.channels = channels;
  return point;
}

// Contents of one or several runs, filled sample by sample.
struct Samples {
  PageInput input;

  size_t Run(const std::string& source, const std::string& version = "2.28.9",
             bool simulated = false, const std::string& library = "nccl", double started = 1e9) {
    dataset::SampleRun run;
    run.id = "run" + std::to_string(input.contents.runs.size());
    run.source = source;
    run.started = started;
    run.state = dataset::SampleRun::State::kDone;
    run.machine.library = library;
    run.machine.library_version = version;
    run.machine.simulated = simulated;
    run.machine.environment["NCCL_DEBUG"] = "WARN";
    input.contents.runs.push_back(run);
    return input.contents.runs.size() - 1;
  }
  void Add(size_t run, const Point& point, double seconds, int round) {
    dataset::Sample sample;
    sample.point = point;
    sample.seconds = seconds;
    sample.round = round;
    input.contents.records.push_back({run, sample});
  }
  // Twelve samples within one per cent.
  void Many(size_t run, const Point& point, double seconds, int count = 12) {
    for (int i = 0; i < count; ++i) Add(run, point, seconds * (1 + 0.001 * (i % 5 - 2)), i);
  }
  void Fail(size_t run, const Point& point, SampleOutcome outcome, const std::string& note) {
    dataset::Sample sample;
    sample.point = point;
    sample.outcome = outcome;
    sample.note = note;
    input.contents.records.push_back({run, sample});
  }
  PageData Make() { return MakePageData(std::move(input)); }
};

}  // namespace diapason::report
