#include "advise/tune/session.h"
#include "base/encoding.h"
#include "base/text.h"

namespace diapason::advise {

std::string_view MeasureName(Measure measure) {
  static constexpr std::string_view kNames[] = {"wall time", "a number in the output",
                                                "geometric mean of the benchmark's times",
                                                "median step of the iteration proxy"};
  return kNames[static_cast<size_t>(measure)];
}

std::string TuneFingerprint(const TuneRequest& request) {
  const ExperimentOptions& design = request.design;
  std::string text;
  const auto add = [&text](const std::string& part) { text += Format("%zu:", part.size()) + part; };
  for (const std::string& word : request.command) add(word);
  add(std::string(MeasureName(request.measure)));
  add(request.pattern);
  add(Format("%d %.17g %.17g %d %d %d %d %d %llu", static_cast<int>(request.pick), design.alpha,
             design.min_gain, design.higher ? 1 : 0, design.baseline_runs, design.most_blocks,
             design.validation_blocks, design.abba ? 1 : 0,
             static_cast<unsigned long long>(design.seed)));
  for (const CostLimit& limit : {design.max_cpu, design.max_memory}) {
    add(Format("%d %.17g", static_cast<int>(limit.kind), limit.value));
  }
  for (const Candidate& candidate : request.candidates) add(candidate.name + "=" + candidate.value);
  if (request.candidates.empty()) {
    add(Format("%d %d", request.library ? static_cast<int>(*request.library) : -1,
               request.version));
    add(request.binds ? std::string(BindsName(*request.binds)) : "");
  }
  return Format("fnv1a64:%016llx", static_cast<unsigned long long>(Fnv1a64(text)));
}

}  // namespace diapason::advise
