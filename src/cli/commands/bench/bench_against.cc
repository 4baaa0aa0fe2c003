// `bench --against`: fresh launches compared with old measurements until every call is decided.
#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/bench/bench_options.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/interrupt.h"
#include "cli/framework/read_by.h"
#include "compare/against.h"
#include "dataset/store.h"

namespace diapason::cli {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The trials of one launch: the calls of the old side that these ranks can make.
struct AgainstPlan {
  std::vector<measure::Trial> trials;
  size_t left_out = 0;
};

Result<AgainstPlan> PlanOf(const std::vector<dataset::Point>& calls,
                           const measure::Subject& subject) {
  AgainstPlan plan;
  for (const dataset::Point& point : calls) {
    const bool here = point.kind == dataset::Point::Kind::kCollective &&
                      point.ranks == subject.ranks && point.nodes == subject.nodes &&
                      point.environment.empty();
    const Result<measure::Trial> trial =
        here ? measure::TrialOf(point, subject.library) : Invalid("another shape");
    if (!trial.ok() || !(measure::PointOf(trial.value(), subject) == point)) {
      ++plan.left_out;
      continue;
    }
    plan.trials.push_back(trial.value());
  }
  if (plan.trials.empty()) {
    return Invalid(Format("--against: none of its {} can be measured by {} on {}",
                          Count(calls.size(), "call"),
                          Count(static_cast<size_t>(subject.ranks), "rank"),
                          Count(static_cast<size_t>(subject.nodes), "node")));
  }
  return plan;
}

// Shorter where a launch would not fit several times into the budget.
measure::Effort EffortOf(const BenchOptions& options, size_t trials) {
  measure::Effort effort = options.effort;
  const double share = options.budget / 4 / static_cast<double>(std::max<size_t>(trials, 1));
  if (options.rounds == 0) effort.seconds = std::clamp(share, 0.02, effort.seconds);
  return effort;
}

Result<int> LeadOne(const BenchOptions& options, const std::vector<dataset::Point>& calls,
                    measure::RankMeasurer* measurer, dataset::StoreContents* contents,
                    size_t* left_out) {
  ASSIGN_OR_RETURN(const AgainstPlan plan, PlanOf(calls, measurer->subject()));
  *left_out = plan.left_out;
  std::vector<dataset::Sample> samples;
  const measure::Effort effort = EffortOf(options, plan.trials.size());
  int64_t wrong = 0;
  for (const measure::Trial& trial : plan.trials) {
    ASSIGN_OR_RETURN(const measure::TimingFigure figure,
                     measure::MeasureFigure(measurer, trial, effort, &samples));
    if (measurer->broken()) return PeerLost(figure.note);
    wrong += std::max<int64_t>(figure.wrong, 0);
  }
  RETURN_IF_ERROR(KeepSamples(options.store, measurer->subject(), samples));
  dataset::SampleRun run;
  run.id = dataset::NewRunId();
  run.started = samples.empty() ? 0 : samples.front().at;
  run.machine = measurer->subject().machine;
  contents->runs.push_back(std::move(run));
  for (dataset::Sample& sample : samples) contents->records.push_back({0, std::move(sample)});
  return wrong == 0 ? kExitFine : kExitFailed;
}

}  // namespace

void AddAgainstOptions(CommandLine* bench, BenchOptions* options) {
  bench->Heading("Comparison with old measurements");
  bench
      ->AddOption("--against", options->against,
                  "Old measurements to compare with, as `compare` reads them: measures their calls "
                  "in fresh launches until every call is decided")
      ->TypeName("FILE|DIR");
  bench
      ->AddTime("--budget", options->budget, "Time after which --against starts no launch", 1,
                86400)
      ->Default("2m");
  bench->AddOption("--launches", options->launches, "Most launches of --against")
      ->Check(Range(1, static_cast<int>(compare::Against::kMostLaunches)))
      ->ShowDefault();
  AddComparisonOptions(bench, &options->comparison);
}

void CheckAgainstOptions(const BenchOptions& options) {
  const ComparisonOutput& output = options.comparison;
  if (options.against.empty()) {
    if (!output.fail_on.empty() || !output.threshold.empty() || !output.junit.empty()) {
      throw UsageError{"--against", "--fail-on, --threshold and --junit need it"};
    }
    return;
  }
  if (!options.sizes.empty() || !options.to.empty() || !options.step.empty() || Chooses(options)) {
    throw UsageError{"--against",
                     "it measures the calls of the old measurements: name no sizes, configuration, "
                     "targets or policy"};
  }
  if (options.csv || options.ranks.backend == "all") {
    throw UsageError{"--against", "cannot be combined with --csv and --backend all"};
  }
}

Result<int> BenchAgainst(const BenchOptions& options) {
  if (IsLaunched()) {
    return Invalid("--against starts fresh launches itself; run it without a launcher");
  }
  ASSIGN_OR_RETURN(const compare::CompareOptions judged, ReadComparisonOptions(options.comparison));
  Result<compare::Side> before = compare::ReadSide({options.against});
  if (!before.ok()) return before.status().WithContext("--against");
  compare::Against against(std::move(before).value(), judged,
                           static_cast<size_t>(options.launches));
  const std::vector<dataset::Point> calls = against.Calls();
  const Clock::time_point begin = Clock::now();
  double longest = 0;
  size_t left_out = 0;
  int status = kExitFine;
  CatchInterrupts();
  const bool choose = std::any_of(calls.begin(), calls.end(),
                                  [](const dataset::Point& call) { return !call.IsDefault(); });
  while (!against.Done()) {
    const double spent = SecondsSince(begin);
    if (Interrupted()) {
      against.Stop("it was interrupted");
    } else if (against.launches() > 0 && spent + longest > options.budget) {
      against.Stop("the budget of " + DurationText(options.budget) + " is spent");
    }
    if (against.Done()) break;
    dataset::StoreContents contents;
    Result<int> led = MeasureWithRanks(options.ranks, choose, [&](measure::RankMeasurer* measurer) {
      return LeadOne(options, calls, measurer, &contents, &left_out);
    });
    if (!led.ok()) return led.status();
    status = std::max(status, led.value());
    against.Add(contents, Format("launch {}", against.launches() + 1));
    longest = std::max(longest, SecondsSince(begin) - spent);
    Progress(Format("launch {}: {}", against.launches(), DurationText(SecondsSince(begin))));
  }
  compare::Comparison comparison = against.Result();
  comparison.notes.push_back(Format("{} fresh launches in {}: {}", against.launches(),
                                    DurationText(SecondsSince(begin)), against.Why()));
  if (left_out > 0) {
    comparison.notes.push_back(Count(left_out, "call") +
                               " of the old side not measured: of other ranks, nodes, "
                               "configurations or environments");
  }
  ComparisonOutput output = options.comparison;
  output.json = options.json;
  ASSIGN_OR_RETURN(const int verdict, PrintComparison(comparison, output));
  if (Interrupted()) return kExitInterrupted;
  return status != kExitFine ? status : verdict;
}

}  // namespace diapason::cli
