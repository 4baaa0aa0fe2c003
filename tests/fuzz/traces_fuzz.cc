// Dumps of NCCL Inspector: whatever they hold, every call that comes out is complete.
#include <cmath>

#include "fuzz.h"
#include "traces/inspector.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace diapason;          // NOLINT
  using namespace diapason::traces;  // NOLINT
  const std::string_view text = fuzz::Text(data, size);
  (void)IsInspectorDump(text);
  const InspectorDump dump = ParseInspector(text);
  for (const InspectorCall& call : dump.calls) {
    fuzz::Promise(call.seconds > 0 && std::isfinite(call.seconds), "a call has a time");
    fuzz::Promise(call.ranks >= 1 && call.nodes >= 1 && call.bytes >= 1, "a call has a shape");
    fuzz::Promise(!call.collective.empty(), "a call has a name");
  }
  fuzz::Promise(dump.bad_lines == 0 || !dump.first_bad_why.empty(), "a bad line has a reason");
  InspectorImport import;
  import.Add(text, "fuzz");
  const Result<dataset::Import> read = import.Finish();
  fuzz::Promise(read.ok() || !read.status().message().empty(), "an error says why");
  if (read.ok()) fuzz::Promise(!read.value().runs.at(0).samples.empty(), "a run has samples");
  return 0;
}
