#include "job_tune/result.h"

#include <cmath>

#include "base/secrets.h"
#include "base/text.h"
#include "base/units.h"
#include "domain/schedule.h"
#include "journal/reader.h"

namespace diapason::job_tune {

std::string JobContext::Text() const {
  return Format("{} up to {}, {} on {}", CollectiveName(collective), FormatBytes(BandLast(band)),
                Count(static_cast<size_t>(shape.ranks), "rank"),
                Count(static_cast<size_t>(shape.nodes), "node"));
}

bool JobContext::Has(Library used, const Shape& ranks, uint8_t of, uint64_t bytes) const {
  return library == used && shape == ranks && static_cast<uint8_t>(collective) == of &&
         band == SizeBand(bytes);
}

job_profile::CountedCalls CountedIn(const TunedContext& context) {
  constexpr double kWhole = 0.02;
  job_profile::CountedCalls counted;
  counted.library = context.context.library;
  counted.collective = static_cast<uint8_t>(context.context.collective);
  counted.band = context.context.band;
  counted.shape = context.context.shape;
  const double calls = std::round(context.calls_per_iteration);
  if (calls >= 1 && std::abs(calls - context.calls_per_iteration) <= kWhole * calls) {
    counted.per_iteration = static_cast<size_t>(calls);
  }
  return counted;
}

policy::Rule RowOf(const JobContext& context, const Config& config) {
  policy::Rule rule;
  rule.collective = context.collective;
  rule.min_bytes = BandFirst(context.band);
  rule.max_bytes = BandLast(context.band);
  rule.config = config;
  rule.nodes = context.shape.nodes;
  rule.ranks = context.shape.ranks;
  return rule;
}

namespace {

// "1.44 x as fast [1.41, 1.47], in 3 fresh launches".
std::string GainText(const PooledGain& gain) {
  return Format("{:.2f} x as fast [{:.2f}, {:.2f}], in {}", gain.gain, gain.low, gain.high,
                LaunchesText(gain));
}

std::string WholeText(LookShares::Of of) {
  switch (of) {
    case LookShares::Of::kTime:
      return "of the collective time";
    case LookShares::Of::kEstimatedTime:
      return "of the collective time (an estimate: captured calls are not timed)";
    case LookShares::Of::kCalls:
      break;
  }
  return "of the calls";
}

std::string Because(const std::string& why) { return why.empty() ? "" : ": " + why; }

}  // namespace

std::string LaunchesText(const PooledGain& gain) {
  if (gain.by_pairs) return Count(gain.launches, "pair") + " of fresh launches";
  return Format("{} fresh launch{}", gain.launches, gain.launches == 1 ? "" : "es");
}

std::string LookShares::ByLaunchesText() const {
  if (by_launches <= 0) return "";
  return Format("{:.0f} % {} can be tried by launches alone: captured in CUDA graphs",
                100 * by_launches, WholeText(of));
}

std::string LookShares::UntriedText() const {
  if (untried <= 0) return "";
  return Format("{:.0f} % {} cannot be tried at all: {}", 100 * untried, WholeText(of),
                Join(reasons, "; "));
}

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFaster:
      return "faster";
    case Verdict::kNothingToGain:
      return "nothing to gain";
    case Verdict::kNotConfirmed:
      return "not confirmed";
    case Verdict::kMetricChanged:
      return "metric changed";
    case Verdict::kUndecided:
      break;
  }
  return "undecided";
}

std::string JobTuneResult::TimeText(double length) const {
  return whole_launches ? Format("{:.3g} s", length) : job_profile::Milliseconds(length);
}

std::string JobTuneResult::TakesText(double length) const {
  return (whole_launches ? "a launch takes " : "an iteration takes ") + TimeText(length);
}

std::string JobTuneResult::Headline() const {
  const double now = gain.gain > 0 ? gain.default_seconds : look.iteration;
  const std::string takes = now > 0 ? TakesText(now) : "";
  const std::string both = gain.gain > 0 ? Format("{} by default and {} tuned: {}", takes,
                                                  TimeText(gain.tuned_seconds), GainText(gain))
                                         : "";
  switch (verdict) {
    case Verdict::kFaster:
      return both;
    case Verdict::kNothingToGain:
      return "nothing to gain" + (takes.empty() ? "" : ": " + takes) +
             ", and nothing that was tried made it faster" + Because(why);
    case Verdict::kNotConfirmed:
      return "not confirmed: what the search found is " +
             (gain.gain > 0 ? GainText(gain) : std::string("not known to be faster")) +
             Because(why);
    case Verdict::kMetricChanged:
      return "faster, but the metric changed: " + both + "; " + metric.Text();
    case Verdict::kUndecided:
      break;
  }
  return "undecided" + Because(why) + (takes.empty() ? "" : "; " + takes);
}

std::vector<std::string> JobTuneResult::Untried() const {
  std::vector<std::string> reasons;
  for (const TunedContext& one : contexts) {
    if (!one.untried.empty()) reasons.push_back(one.context.Text() + ": " + one.untried);
  }
  const std::string never = shares.UntriedText();
  if (!never.empty()) reasons.push_back(never);
  return reasons;
}

std::string JobTuneResult::UseCommand() const {
  if (files.policy.empty()) return "";
  return "diapason run --policy " + ShellWord(files.policy) + " -- " + MaskSecretsIn(command);
}

namespace {

void AddJournals(const std::vector<std::string>& journals, job_profile::ProfileMaker* maker) {
  for (const std::string& file : journals) {
    // A rank that was ended early may leave a file without a line; the others have the iterations.
    const Result<journal::JournalContents> read = journal::ReadJournal(file);
    if (read.ok()) maker->Add(file, read.value());
  }
}

}  // namespace

Status ProfileSettings(const std::vector<std::string>& journals,
                       const job_profile::CountedCalls& counted, JobTuneResult* result) {
  job_profile::ProfileMaker maker;
  AddJournals(journals, &maker);
  ASSIGN_OR_RETURN(job_profile::SidedProfiles sides, maker.FinishSides(counted));
  result->by_default = std::move(sides.by_default);
  result->tuned = std::move(sides.by_policy);
  return {};
}

Status ProfilePair(const std::vector<std::string>& default_journals,
                   const std::vector<std::string>& policy_journals, JobTuneResult* result) {
  job_profile::ProfileMaker by_default;
  AddJournals(default_journals, &by_default);
  job_profile::ProfileMaker tuned;
  AddJournals(policy_journals, &tuned);
  // Both or none: one alone is no comparison.
  ASSIGN_OR_RETURN(job_profile::JobProfile before, by_default.Finish());
  ASSIGN_OR_RETURN(job_profile::JobProfile after, tuned.Finish());
  result->by_default = std::move(before);
  result->tuned = std::move(after);
  return {};
}

}  // namespace diapason::job_tune
