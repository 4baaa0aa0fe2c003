// Dumps of the flight recorder, pickles and JSON: whatever they hold, reading ends, no code runs,
// tables stay within their limits, and every finding has evidence.
#include "flight_recorder/diagnose.h"
#include "flight_recorder/read.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace diapason;                   // NOLINT
  using namespace diapason::flight_recorder;  // NOLINT
  const std::string_view text = fuzz::Text(data, size);
  FlightRecord record;
  // Dumps of several ranks: the whole, and the two parts around a line feed.
  const size_t feed = text.find('\n');
  const std::string_view first = text.substr(0, feed);
  const std::string_view second =
      feed == std::string_view::npos ? std::string_view() : text.substr(feed + 1);
  const std::pair<std::string_view, const char*> parts[] = {
      {text, "nccl_trace_rank_0"}, {first, "rank_1.json"}, {second, "dump"}};
  for (const auto& [part, name] : parts) {
    const Status status = ReadDump(-1, part, name, &record);
    fuzz::Promise(status.ok() || !status.message().empty(), "an error says why");
  }
  for (const Dump& dump : record.dumps) {
    fuzz::Promise(dump.rank >= 0, "a dump has a rank");
    fuzz::Promise(dump.entries.size() <= FlightRecord::kMostEntriesOfDump, "entries have a limit");
    for (const Entry& entry : dump.entries) {
      fuzz::Promise(entry.group < record.groups.size(), "an entry has a group");
    }
  }
  for (const Finding& finding : Diagnose(record)) {
    fuzz::Promise(!finding.id.empty() && !finding.title.empty(), "a finding says what is the case");
    fuzz::Promise(!finding.evidence.empty(), "a finding has evidence");
  }
  Overview(record, true);
  return 0;
}
