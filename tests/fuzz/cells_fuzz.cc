// What ranks read from a store or from a program's reward file: schedules, results, lines.
#include "domain/schedule.h"
#include "fuzz.h"
#include "learn/line_matcher.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace diapason;  // NOLINT
  const std::string_view text = fuzz::Text(data, size);
  const Result<Schedule> schedule = ParseSchedule(text);
  if (schedule.ok()) {
    fuzz::Promise(schedule.value().Calls() > 0, "a schedule has calls");
    const Result<Schedule> again = ParseSchedule(ScheduleText(schedule.value()));
    fuzz::Promise(again.ok() && again.value() == schedule.value(), "a schedule travels unchanged");
  }
  for (const size_t segments : {1, 2, 7}) {
    const auto results = learn::ParseResults(text, segments);
    if (!results.ok()) continue;
    fuzz::Promise(results.value().size() == segments, "as many results as segments");
    for (const learn::SegmentResult& one : results.value()) {
      fuzz::Promise(one.seconds >= 0 && one.seconds < 1e9, "times are times");
    }
  }
  // However the file's content arrives, the lines are the same.
  learn::RewardLines whole;
  learn::RewardLines bytes;
  const std::vector<learn::RewardLine> read = whole.Feed(text);
  const size_t lines = read.size();
  size_t pieces = 0;
  for (size_t i = 0; i < text.size(); i += 3) pieces += bytes.Feed(text.substr(i, 3)).size();
  fuzz::Promise(lines == pieces && whole.garbage() == bytes.garbage(),
                "pieces give the same lines");
  // Whatever they say, they are booked for calls that were made.
  learn::LineMatcher matcher;
  uint64_t calls = 0;
  for (const learn::RewardLine& line : read) {
    matcher.Line(line);
    calls += line.bytes % 4;
    for (const learn::LineMatcher::Credit& credit : matcher.Read(calls)) {
      fuzz::Promise(credit.first < credit.end && credit.end <= calls, "calls that were made");
    }
  }
  return 0;
}
