#include "env_tune/session.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "base/clock.h"
#include "base/environment.h"
#include "base/file.h"
#include "base/stats.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "env_tune/bench_figures.h"
#include "env_tune/knob_list.h"
#include "env_tune/report.h"

namespace diapason::env_tune {
namespace {

constexpr size_t kTailLines = 8;
constexpr double kTimeoutFactor = 10;
constexpr double kLeastTimeout = 60;
constexpr double kFirstTimeout = 3600;  // of the warm-up, of whose time nothing is known

// Whether the command's NCCL would load our plugin, and no journal is set already.
bool PluginIsSet(const Environment& environment) {
  if (environment.Get("DIAPASON_JOURNAL").value_or("") != "") return false;
  for (const char* name : {"NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN"}) {
    if (environment.Get(name).value_or("").find("diapason") != std::string::npos) return true;
  }
  return false;
}

bool Succeeded(const CommandRun& run) { return run.status == 0 && !run.timed_out; }

class EnvTuneSession {
 public:
  EnvTuneSession(const TuneRequest& request, const host::Machine& machine,
                 std::function<void(const std::string&)> say, const std::atomic<bool>* stop)
      : request_(request), machine_(machine), say_(std::move(say)), stop_(stop) {}

  Result<TuneResult> Run();

 private:
  Result<RunFigure> Measure(const EnvVars& settings, CommandRun* run);
  Result<double> ValueOf(const CommandRun& run);
  std::string LastLine(const CommandRun& run) const;
  Status WarmUp(StateHead* head, std::string* broken, bool* no_figure);
  Status Replay(const TuneState& state, Experiment* experiment);
  Status Follow(TuneResult* result, std::optional<StateWriter>* writer);
  void SayRun(const Step& step, const RunFigure& figure, const Experiment& experiment);
  void SayVerdicts(const Experiment& experiment);
  bool Stopped() const { return stop_ != nullptr && stop_->load(); }

  const TuneRequest& request_;
  const host::Machine& machine_;
  std::function<void(const std::string&)> say_;
  const std::atomic<bool>* stop_;
  double timeout_s_ = 0;
  double started_ = SteadySeconds();
  double warm_up_s_ = 0;
  std::optional<MetricPattern> pattern_;
  BenchFigures bench_;  // of the last run
  std::vector<std::string> left_out_;
  std::vector<double> walls_;  // of the default's runs
  std::vector<double> busy_;
  size_t said_ = 0;  // comparisons whose verdict was told
};

Result<double> EnvTuneSession::ValueOf(const CommandRun& run) {
  switch (request_.measure) {
    case Measure::kWallTime:
      return run.wall_s;
    case Measure::kPattern: {
      const Result<double> found = pattern_->Find(run.out.Text());
      if (found.ok() || found.status().code() != ErrorCode::kNotFound) return found;
      const Result<double> in_errors = pattern_->Find(run.err.Text());
      return in_errors.ok() || in_errors.status().code() != ErrorCode::kNotFound ? in_errors
                                                                                 : found;
    }
    case Measure::kBench:
    case Measure::kIteration: {
      ASSIGN_OR_RETURN(bench_, FindFigures(run.out.Text()));
      return bench_.seconds;
    }
  }
  return Internal("no measure");
}

// Whoever's pattern does not match wants to see what it was to match.
std::string EnvTuneSession::LastLine(const CommandRun& run) const {
  if (request_.measure != Measure::kPattern) return "";
  std::string last = run.out.Tail(1);
  if (last.empty()) last = run.err.Tail(1);
  return last.empty() ? "; it wrote nothing" : "; its last line: " + last.substr(0, 300);
}

Result<RunFigure> EnvTuneSession::Measure(const EnvVars& settings, CommandRun* run) {
  CommandOptions options;
  options.timeout_s = timeout_s_;
  options.show = request_.verbose;
  options.stop = stop_;
  ASSIGN_OR_RETURN(*run, RunCommand(request_.command, settings, options));
  RunFigure figure;
  figure.cpu_s = run->cpu_s;
  figure.memory = run->memory;
  if (run->timed_out) {
    figure.why = Format("it had not ended after {:.0f} s", timeout_s_);
  } else if (!Succeeded(*run)) {
    figure.why = run->status > 128 ? Format("it was ended by signal {}", run->status - 128)
                                   : Format("it ended with status {}", run->status);
    const std::string last = run->err.Tail(1);
    if (!last.empty()) figure.why += ": " + last.substr(0, 300);
  } else {
    const Result<double> value = ValueOf(*run);
    if (value.ok()) {
      figure.fine = true;
      figure.value = value.value();
    } else {
      figure.why = value.status().message() + LastLine(*run);
    }
  }
  return figure;
}

// The first run: its time does not count, what it shows of the command does.
Status EnvTuneSession::WarmUp(StateHead* head, std::string* broken, bool* no_figure) {
  TemporaryFolder folder;
  EnvVars settings;
  const bool journal = PluginIsSet(ProcessEnvironment()) && !folder.path().empty();
  if (journal) settings["DIAPASON_JOURNAL"] = folder.path() + "/%h.%p.jsonl";
  timeout_s_ = request_.timeout_s > 0 ? request_.timeout_s : kFirstTimeout;
  CommandRun run;
  ASSIGN_OR_RETURN(RunFigure measured, Measure(settings, &run));
  if (run.interrupted) return {};
  if (!measured.fine) {
    *broken = measured.why;
    *no_figure = Succeeded(run);
    if (*no_figure && request_.measure == Measure::kPattern) return {};  // has its last line
    for (const process::BoundedText* text : {&run.err, &run.out}) {
      const std::string tail = text->Tail(kTailLines);
      if (!tail.empty() && broken->find(tail) == std::string::npos) *broken += "\n" + tail;
    }
    return {};
  }
  warm_up_s_ = run.wall_s;
  if (request_.timeout_s <= 0) timeout_s_ = std::max(kLeastTimeout, kTimeoutFactor * run.wall_s);
  if (head == nullptr) return {};
  BindingFacts facts;
  facts.wall_s = run.wall_s;
  facts.cpu_s = run.cpu_s;
  facts.cpus = static_cast<int>(machine_.allowed_cpus.size());
  if (machine_.cpu_quota > 0 && machine_.cpu_quota < facts.cpus) {
    facts.cpus = std::max(1, static_cast<int>(std::ceil(machine_.cpu_quota)));
  }
  std::error_code error;
  for (std::filesystem::directory_iterator file(folder.path(), error), end; !error && file != end;
       file.increment(error)) {
    const Result<journal::JournalContents> contents = journal::ReadJournal(file->path().string());
    if (contents.ok()) AddJournalSizes(contents.value(), &facts);
  }
  if (!bench_.sizes.empty()) {
    facts.sizes = bench_.sizes;
    facts.sizes_from =
        request_.measure == Measure::kBench ? "the benchmark" : "the iteration proxy";
  }
  head->binding = FindBinding(facts);
  if (request_.binds) {
    head->binding.binds = *request_.binds;
    head->binding.stated = true;
    // What was measured is worth knowing all the same; advice how to find out is not.
    if (facts.sizes.empty() && head->binding.evidence.size() > 1) {
      head->binding.evidence.pop_back();
    }
  }
  return {};
}

// Tells an experiment what a state has. The budget may have ended the comparisons back then.
Status EnvTuneSession::Replay(const TuneState& state, Experiment* experiment) {
  for (size_t i = 0; i < state.runs.size(); ++i) {
    const StateRun& run = state.runs[i];
    std::optional<Step> step = experiment->Next();
    if (step && run.step.phase == ExperimentPhase::kValidate &&
        step->phase != ExperimentPhase::kValidate) {
      experiment->StopComparing();
      step = experiment->Next();
    }
    if (!step || step->phase != run.step.phase || step->candidate != run.step.candidate ||
        step->treated != run.step.treated || step->settings != run.step.settings) {
      return Invalid(
          Format("'{}': run {} is not the one this tuning would have made; the state "
                 "was changed, or another version of diapason wrote it",
                 request_.state, i + 1));
    }
    experiment->Tell(run.figure);
  }
  return {};
}

void EnvTuneSession::SayRun(const Step& step, const RunFigure& figure,
                            const Experiment& experiment) {
  if (!request_.verbose) return;
  std::string text = std::string(PhaseName(step.phase)) + ": ";
  for (const auto& [name, value] : step.settings) text += name + "=" + value + " ";
  if (step.settings.empty()) text += "default ";
  text += figure.fine ? ValueText(request_, figure.value) : "failed: " + figure.why;
  say_(text + Format(" (run {})", experiment.runs()));
}

void EnvTuneSession::SayVerdicts(const Experiment& experiment) {
  const std::vector<KnobComparison>& all = experiment.comparisons();
  while (said_ < all.size() && all[said_].verdict != KnobVerdict::kNotTried) {
    say_(CandidateText(experiment.candidates()[said_]) + ": " + ComparisonText(all[said_]));
    ++said_;
  }
}

Status EnvTuneSession::Follow(TuneResult* result, std::optional<StateWriter>* writer) {
  Experiment& experiment = result->experiment;
  bool planned = false;
  double mean = warm_up_s_;
  int counted = 1;
  while (const std::optional<Step> step = experiment.Next()) {
    const double elapsed = SteadySeconds() - started_;
    if (step->phase == ExperimentPhase::kCompare && !planned) {
      planned = true;
      say_(PlanLine(request_, experiment, mean));
    }
    if (step->phase == ExperimentPhase::kCompare &&
        elapsed + mean * (experiment.RunsForValidation() + 1) > request_.budget_s) {
      result->stopped_comparing = true;
      say_("the budget ends the comparisons here");
      experiment.StopComparing();
      continue;
    }
    if (step->phase == ExperimentPhase::kValidate && elapsed > request_.budget_s) {
      result->end = TuneEnd::kBudget;
      return {};
    }
    if (step->phase == ExperimentPhase::kValidate && step->block == 0 && step->slot == 0) {
      say_("validation: what was kept against the default, on fresh runs");
    }
    CommandRun run;
    ASSIGN_OR_RETURN(const RunFigure figure, Measure(step->settings, &run));
    if (run.interrupted || Stopped()) {
      result->end = TuneEnd::kInterrupted;
      return {};
    }
    mean = (mean * counted + run.wall_s) / (counted + 1);
    ++counted;
    if (step->settings.empty() && figure.fine) {
      walls_.push_back(run.wall_s);
      if (run.wall_s > 0) busy_.push_back(run.cpu_s / run.wall_s);
    }
    experiment.Tell(figure);
    SayRun(*step, figure, experiment);
    if (writer->has_value()) {
      RETURN_IF_ERROR((*writer)->Add({*step, figure}));
    }
    if (!experiment.broken().empty()) {
      result->end = TuneEnd::kBroken;
      result->broken = experiment.broken();
      result->no_figure = step->phase == ExperimentPhase::kBaseline && Succeeded(run);
      const std::string tail = run.err.Tail(kTailLines);
      if (!tail.empty() && result->broken.find(tail) == std::string::npos) {
        result->broken += "\n" + tail;
      }
      return {};
    }
    SayVerdicts(experiment);
  }
  return {};
}

Result<TuneResult> EnvTuneSession::Run() {
  if (request_.measure == Measure::kPattern) {
    ASSIGN_OR_RETURN(MetricPattern pattern, MetricPattern::Make(request_.pattern, request_.pick));
    pattern_.emplace(std::move(pattern));
  }
  StateHead head;
  head.fingerprint = TuneFingerprint(request_);
  head.command = request_.command;
  std::optional<TuneState> before;
  if (request_.resume) {
    ASSIGN_OR_RETURN(TuneState read, ReadState(request_.state));
    if (read.head.fingerprint != head.fingerprint) {
      return Invalid("the state '" + request_.state +
                     "' is of another command or other options: " + Join(read.head.command, " "));
    }
    before = std::move(read);
    head = before->head;
  } else if (!request_.state.empty() && FileExists(request_.state)) {
    return Invalid("the state '" + request_.state +
                   "' is there already: go on with it (--resume), or name another file");
  }
  say_("warm-up: one run that does not count");
  std::string broken;
  bool no_figure = false;
  RETURN_IF_ERROR(WarmUp(before ? nullptr : &head, &broken, &no_figure));
  ExperimentOptions design = request_.design;
  design.warm_ups = 0;
  if (!before && broken.empty()) {
    std::vector<KnobValue> wanted = request_.candidates;
    if (wanted.empty() && request_.library) {
      wanted = BuiltInKnobs(*request_.library, request_.version, head.binding.binds,
                            knobs::Catalogue::BuiltIn(), &left_out_);
    }
    head.candidates = WithoutPresent(std::move(wanted), ProcessEnvironment(), &left_out_);
  }
  TuneResult result{Experiment(design, head.candidates)};
  result.binding = head.binding;
  result.left_out = left_out_;
  if (!broken.empty()) {
    result.end = TuneEnd::kBroken;
    result.broken = broken;
    result.no_figure = no_figure;
    return result;
  }
  if (Stopped()) {
    result.end = TuneEnd::kInterrupted;
    return result;
  }
  say_("what binds: " + BindingText(head.binding));
  std::optional<StateWriter> writer;
  if (before) {
    RETURN_IF_ERROR(Replay(*before, &result.experiment));
    result.resumed_runs = static_cast<int>(before->runs.size());
    say_(Format("{} runs taken over from the state", result.resumed_runs));
    ASSIGN_OR_RETURN(StateWriter made, StateWriter::Continue(request_.state, *before));
    writer.emplace(std::move(made));
  } else if (!request_.state.empty()) {
    ASSIGN_OR_RETURN(StateWriter made, StateWriter::Create(request_.state, head));
    writer.emplace(std::move(made));
  }
  RETURN_IF_ERROR(Follow(&result, &writer));
  result.elapsed_s = SteadySeconds() - started_;
  if (!walls_.empty()) result.run_s = Median(walls_);
  if (!busy_.empty()) result.cpus_busy = Median(busy_);
  return result;
}

}  // namespace

Result<TuneResult> RunTuning(const TuneRequest& request, const host::Machine& machine,
                             const std::function<void(const std::string&)>& say,
                             const std::atomic<bool>* stop) {
  return EnvTuneSession(request, machine, say, stop).Run();
}

}  // namespace diapason::env_tune
