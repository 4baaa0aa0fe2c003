#pragma once

#include <string>
#include <vector>

#include "env_tune/session.h"
#include "host/machine.h"

namespace diapason::env_tune {

// A figure in the unit of the measure: "1.234 s", "51.2 us", "812.5".
std::string ValueText(const TuneRequest& request, double value);
// "+5.3 %", or "x 12" where it is tenfold: how much faster, or how much more, from a log gain.
std::string GainText(double log_gain);
std::string CandidateText(const KnobValue& candidate);         // "NAME=VALUE"
std::string ComparisonText(const KnobComparison& comparison);  // its verdict in a sentence
std::string BindingText(const Binding& binding);
// What is ahead, once the time and noise of a run are known.
std::string PlanLine(const TuneRequest& request, const Experiment& experiment, double run_s);

// The ten things that good tuning has done, each answered.
struct ChecklistLine {
  enum class Answer : uint8_t { kDone, kNotDone, kNotApplicable };
  std::string what;
  Answer answer = Answer::kNotDone;
  std::string evidence;
};
std::vector<ChecklistLine> Checklist(const TuneRequest& request, const TuneResult& result,
                                     const host::Machine& machine);

// "" where nothing is claimed; else the final settings as export lines.
std::string FinalText(const TuneResult& result);
// What came out, in one sentence.
std::string ConclusionText(const TuneRequest& request, const TuneResult& result);
// The whole report, in Markdown that is also meant to be read as it is.
std::string TuneReport(const TuneRequest& request, const TuneResult& result,
                       const host::Machine& machine);

}  // namespace diapason::env_tune
