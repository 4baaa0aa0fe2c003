#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/bench/bench_options.h"
#include "cli/commands/commands.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/read_by.h"
#include "cli/framework/words.h"
#include "dataset/store.h"
#include "domain/collectives.h"
#include "env_tune/bench_figures.h"
#include "measure/judge_targets.h"
#include "policy/policy.h"

namespace diapason::cli {
namespace {

using measure::RankMeasurer;
using measure::Subject;
using measure::TimingFigure;
using measure::Trial;

Result<BenchRow> MeasureRow(const BenchOptions& options, measure::RankMeasurer* measurer,
                            const Trial& trial, double link,
                            std::vector<dataset::Sample>* samples) {
  BenchRow row;
  row.trial = trial;
  row.has_in_place = HasInPlace(trial.operation);
  row.ideal = measure::IdealSeconds(trial, measurer->subject().ranks, link);
  Result<TimingFigure> figure = measure::MeasureFigure(measurer, trial, options.effort, samples);
  if (!figure.ok()) return figure.status();
  row.out_of_place = std::move(figure).value();
  if (measurer->broken()) return PeerLost(row.out_of_place.note);
  if (!row.has_in_place) return row;
  Trial in_place = trial;
  in_place.in_place = true;
  figure = measure::MeasureFigure(measurer, in_place, options.effort, samples);
  if (!figure.ok()) return figure.status();
  row.in_place = std::move(figure).value();
  if (measurer->broken()) return PeerLost(row.in_place.note);
  return row;
}

void PrintFigures(const BenchResult& result) {
  std::vector<std::pair<double, double>> sizes;
  for (const BenchRow& row : result.rows) {
    sizes.emplace_back(static_cast<double>(row.trial.bytes), row.out_of_place.mean);
  }
  PrintOut("{}\n", env_tune::EncodeFigures(env_tune::FiguresOf(std::move(sizes))));
}

Result<int> LeadBench(const BenchOptions& options, RankMeasurer* measurer) {
  const bool all = report::CurrentTableStyle().format != report::TableFormat::kText;
  const bool table = !options.json && !options.figures && !all;
  std::string heading;
  BenchResult result;
  std::vector<dataset::Sample> samples;
  const auto print_row = [&](const BenchRow& row) {
    if (!table) return;
    const std::string name = measure::CollectiveText(row.trial.operation);
    if (name != heading) {
      PrintOut("{}{}", heading.empty() ? "" : "\n", BenchHead(result, name));
      heading = name;
    }
    WriteOut(BenchLine(row, result.subject.ranks));
    std::fflush(stdout);
  };
  const Status measured = MeasureBench(options, measurer, print_row, &result, &samples);
  if (!measured.ok() && result.link_source.empty() && result.rows.empty()) return measured;
  if (options.json) WriteOut(BenchJson(result));
  if (all) WriteOut(BenchTable({result}).Text());
  if (options.figures) PrintFigures(result);
  if (table) WriteOut(BenchTail(result));
  RETURN_IF_ERROR(KeepSamples(options.store, result.subject, samples));
  if (!measured.ok()) return measured;
  return result.Wrong() == 0 ? kExitFine : kExitFailed;
}

Result<int> RunBench(const BenchOptions& options) {
  if (options.ranks.backend == "all") return BenchAllBackends(options);
  if (!options.against.empty()) return BenchAgainst(options);
  if (!options.policy.empty() && !IsLaunched()) {
    // Before any rank is started.
    RETURN_IF_ERROR(ReadFile(options.policy, policy::kMostBytes));
  }
  return MeasureWithRanks(options.ranks, Chooses(options), [&options](RankMeasurer* measurer) {
    if (!options.policy.empty()) return CheckPolicyByRunning(options, measurer);
    return options.targets.empty() ? LeadBench(options, measurer)
                                   : CompareWithTargets(options, measurer);
  });
}

// The same mistake as in `--sizes 4M:1K`, and found as early.
void CheckOrder(const BenchOptions& options) {
  if (options.to.empty()) return;
  const Result<uint64_t> from = ParseBytes(options.from);
  const Result<uint64_t> to = ParseBytes(options.to);
  if (!from.ok() || !to.ok() || from.value() <= to.value()) return;
  throw UsageError{"-b, -e", Format("'{}:{}' is reversed; -b is the smallest size, -e the largest",
                                    options.from, options.to)};
}

void AddSizeOptions(CommandLine* command, BenchOptions* options) {
  command->Heading("Sizes and calls, with the short names of nccl-tests");
  command->AddOption("-b,--minbytes", options->from, "Smallest message size")
      ->TypeName("SIZE")
      ->Check(ReadBy(ParseBytes))
      ->ShowDefault();
  command->AddOption("-e,--maxbytes", options->to, "Largest message size")
      ->TypeName("SIZE")
      ->Check(ReadBy(ParseBytes))
      ->Default("128M on GPUs, 8M elsewhere");
  command->AddOption("-f,--stepfactor", options->factor, "Factor from one size to the next")
      ->Check(Range(1.01, 1e6))
      ->ShowDefault();
  command
      ->AddOption("-i,--stepbytes", options->step, "Increment in bytes from one size to the next")
      ->TypeName("SIZE")
      ->Check(ReadBy(ParseBytes));
  command
      ->AddOption("--sizes", options->sizes,
                  std::string("Message sizes, instead of -b, -e, -f and -i: ") + kSizesText)
      ->TypeName("SIZES")
      ->Check(ReadBy(ParseSizes));
  command
      ->AddOption("-n,--iters", options->effort.iterations,
                  "Number of back-to-back calls in one round")
      ->Check(Range(1, 1000000))
      ->ShowDefault();
  command
      ->AddOption("-w,--warmup_iters", options->effort.warmups,
                  "Number of warm-up calls before the first round")
      ->Check(Range(0, 1000000))
      ->ShowDefault();
  command->AddOption("--rounds", options->rounds, "Number of rounds")
      ->Check(Range(1, 100000))
      ->Default("6 to 15, until the interval is narrow");
  command
      ->AddOption("-c,--check", options->check, "Whether to check the results, element by element")
      ->TypeName("0|1")
      ->Check(Range(0, 1))
      ->ShowDefault();
  command
      ->AddOption("-o,--op", options->reduce, "Reduction: sum, prod, min, max, avg, a list, or all")
      ->TypeName("NAME")
      ->Words({"sum", "prod", "min", "max", "avg", "all"})
      ->Check(ReadBy(ParseReductions))
      ->ShowDefault();
  command
      ->AddOption("-d,--datatype", options->type,
                  "Data type: " + Join(DataTypeWords(), ", ") + ", a list, or all")
      ->TypeName("NAME")
      ->Words(DataTypeWords())
      ->Check(ReadBy(ParseTypes))
      ->ShowDefault();
  command->AddOption("-r,--root", options->root, "Root rank of broadcast and reduce")
      ->Check(Range(0, 1000000))
      ->ShowDefault();
}

void AddOutputOptions(CommandLine* command, BenchOptions* options) {
  command->Heading("Configuration");
  command->AddOption("--algorithm", options->algorithm, "Algorithm to run, by the library's name")
      ->TypeName("NAME");
  command->AddOption("--protocol", options->protocol, "Protocol to run")->TypeName("NAME");
  command->AddOption("--channels", options->channels, "Number of channels to use")
      ->Check(Range(1, 1024));
  command->Heading("Output");
  command
      ->AddOption("--link", options->link,
                  "Bandwidth of a link in each direction, for the ideal time (default: as the "
                  "backend knows it, or measured)")
      ->TypeName("GB/s")
      ->Check(Range(1e-6, 1e6));
  command->AddOption("--targets", options->targets, "File with performance targets to compare with")
      ->TypeName("FILE");
  Option* json = command->AddJson(options->json, "Print JSON, with every round");
  command->AddFlag("--csv", options->csv, "The same as --format csv")
      ->Excludes(json)
      ->Excludes(command->AddFormat());
  command->AddInternalFlag("--figures", options->figures);
  AddPolicyOption(command, options);
  command->AddOption("--store", options->store, "Store to add every round to")->TypeName("STORE");
  AddAgainstOptions(command, options);
}

}  // namespace

bool Chooses(const BenchOptions& options) {
  return !options.algorithm.empty() || !options.protocol.empty() || options.channels != 0 ||
         !options.targets.empty() || !options.policy.empty();
}

Status MeasureBench(const BenchOptions& options, measure::RankMeasurer* measurer,
                    const std::function<void(const BenchRow&)>& on_row, BenchResult* result,
                    std::vector<dataset::Sample>* samples) {
  result->subject = measurer->subject();
  ASSIGN_OR_RETURN(const std::vector<Trial> plan, PlanBench(options, result->subject));
  ASSIGN_OR_RETURN(const measure::LinkBandwidth link,
                   measure::FindLink(measurer, options.link * 1e9));
  result->link = link.bytes_per_second;
  result->link_source = link.source;
  for (const Trial& trial : plan) {
    Result<BenchRow> row = MeasureRow(options, measurer, trial, result->link, samples);
    if (!row.ok()) {
      return row.status().WithContext(measure::CollectiveText(trial.operation) + " of " +
                                      FormatBytes(trial.bytes));
    }
    on_row(row.value());
    result->rows.push_back(std::move(row).value());
  }
  return {};
}

Status KeepSamples(const std::string& path, const Subject& subject,
                   const std::vector<dataset::Sample>& samples) {
  if (path.empty()) return {};
  ASSIGN_OR_RETURN(std::unique_ptr<dataset::SampleStore> store,
                   dataset::SampleStore::Open(path, dataset::SampleStore::Access::kWrite));
  dataset::SampleRun run;
  run.id = dataset::NewRunId();
  run.source = "bench";
  run.origin = "diapason bench";
  run.started = samples.empty() ? 0 : samples.front().at;
  run.state = dataset::SampleRun::State::kDone;
  run.machine = subject.machine;
  return store->AddRun(run, samples).status();
}

void AddBench(CommandLine* parent, CommandAction* run) {
  auto options = std::make_shared<BenchOptions>();
  CommandLine* command =
      parent->AddCommand("bench", "Time collectives as nccl-tests does, on any backend");
  command->Describe(
      "The time of a collective is that of the slowest rank. `--backend all` compares all backends "
      "that work on this host.");
  command
      ->AddOption("COLLECTIVE", options->collectives,
                  "Collectives to measure: " + Join(MeasuredCollectives(), ", "))
      ->Words(MeasuredCollectives())
      ->Check(ReadBy(measure::ParseMeasured))
      ->ShowDefault();
  AddSizeOptions(command, options.get());
  AddRankOptions(command, &options->ranks, true);
  AddOutputOptions(command, options.get());
  command->Heading("");
  command->AllowCommand();
  AddBenchIteration(command, run);
  AddBenchPairs(command, run);
  command->Example("diapason bench allreduce -g 4",
                   "Measure sizes from 8 bytes upwards on four ranks");
  command->Example("diapason bench allreduce -g 4 --sizes 64K:4M:x4 --policy my.conf",
                   "Compare a policy with the library's own choice, alternating");
  command->Example("diapason bench allgather --backend sim --cluster h100x8 --json",
                   "Run on a simulated cluster");
  command->Example("diapason bench --against before.db -g 4 --fail-on 5%",
                   "Measure until it is clear whether calls became slower");
  command->ExitStatus(kExitFailed, "results are wrong, a target is missed, or ranks failed");
  command->ExitStatus(kExitWarnings, "--against: a call is slower by more than --fail-on");
  command->SeeAlso({"sweep", "backends", "compare"});
  command->Callback([command, options, run] {
    if (command->CommandGiven()) return;
    if (!options->sizes.empty() &&
        (!options->to.empty() || !options->step.empty() || options->from != "8")) {
      throw UsageError{"--sizes", "cannot be combined with -b, -e and -i"};
    }
    CheckOrder(*options);
    if (!options->policy.empty() && options->ranks.backend == "all") {
      throw UsageError{"--policy",
                       "a policy is for one library: name a single backend instead of all"};
    }
    CheckAgainstOptions(*options);
    if (options->csv) AskedFormat() = "csv";
    options->effort.check = options->check != 0;
    if (options->rounds > 0) {
      options->effort.least_rounds = options->effort.most_rounds = options->rounds;
      options->effort.seconds = 1e9;
    }
    *run = [options] { return RunBench(*options); };
  });
}

}  // namespace diapason::cli
