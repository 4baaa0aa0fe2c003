// Logs: whatever they hold, reading ends, tables stay within their limits, and every finding has
// evidence.
#include <cmath>

#include "fuzz.h"
#include "logs/diagnose.h"
#include "logs/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace diapason;        // NOLINT
  using namespace diapason::logs;  // NOLINT
  const std::string_view text = fuzz::Text(data, size);
  LogFacts facts;
  // A first byte of its own says how it is cut into files: lines meet those of other files.
  const size_t half = size == 0 ? 0 : (static_cast<size_t>(data[0]) * size) / 255;
  const Status first = ReadLogText(text.substr(0, half), "nccl_trace_rank_0.json", &facts);
  const Status second = ReadLogText(text.substr(half), "all_reduce_1.log", &facts);
  const Status third = ReadLogText(text, "both.log", &facts);
  for (const Status& status : {first, second, third}) {
    fuzz::Promise(status.ok() || !status.message().empty(), "an error says why");
  }
  fuzz::Promise(facts.processes.size() <= kMostProcesses, "processes have a limit");
  fuzz::Promise(facts.communicators.size() <= kMostCommunicators, "communicators have a limit");
  for (const CommRank& member : facts.members) {
    fuzz::Promise(member.process < facts.processes.size(), "a member has a process");
    fuzz::Promise(member.communicator < facts.communicators.size(), "a member has a communicator");
  }
  for (const PerfTest& test : facts.perf.tests) {
    fuzz::Promise(std::isfinite(test.peak) && std::isfinite(test.average), "figures are finite");
  }
  for (const Finding& finding : Diagnose(facts)) {
    fuzz::Promise(!finding.id.empty() && !finding.title.empty(), "a finding says what is the case");
    fuzz::Promise(!finding.evidence.empty(), "a finding has evidence");
  }
  return 0;
}
