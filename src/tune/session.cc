#include "tune/session.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"
#include "domain/collectives.h"
#include "domain/decision.h"
#include "tune/session_state.h"

namespace diapason::tune {
namespace {

using measure::Measurement;
using measure::Measurer;
using measure::Trial;
using search::CallCase;

// How the budget is spent: until then; what is left is for the proof.
constexpr double kSearchUntil = 0.34;
constexpr double kFinalRoundUntil = 0.56;
constexpr double kBetweenUntil = 0.66;
// Of every case, with the default; a model may send one more.
constexpr size_t kMostFinalists = 6;
// A configuration that was not measured must be predicted to be this much faster than the measured
// ones.
constexpr double kWorthALook = 0.03;
// Blocks of calls are long against the clock and short against drift; where it counts they are
// longer, since starting one costs as much as some calls. Of an iteration a few steps.
constexpr double kSearchBlock = 0.003;
constexpr double kProofBlock = 0.008;
constexpr double kStepBlock = 0.06;

}  // namespace

Collective CollectiveOf(const Trial& trial) { return NamesOf(trial.operation); }

std::string CallText(const Trial& trial) {
  return measure::CollectiveText(trial.operation) + " " + FormatBytes(trial.bytes);
}

Result<TuneOutcome> TuneSession::Run() {
  Status status = Start();
  // Who interrupts it gets what was measured, and nothing that was not proven.
  for (Status (TuneSession::*step)() :
       {&TuneSession::Search, &TuneSession::Learn, &TuneSession::Plan, &TuneSession::VerifyWinners,
        &TuneSession::ProveTogether, &TuneSession::Write}) {
    if (status.ok() && !stopped_) status = (this->*step)();
  }
  if (Status ended = EndSearch(false); status.ok()) status = ended;
  if (!status.ok()) return status;
  outcome_.seconds = Passed();
  outcome_.more = More();
  outcome_.interrupted = stopped_;
  for (const TunedCall& line : outcome_.lines) {
    if (line.between) outcome_.between.push_back(line);
  }
  std::sort(outcome_.between.begin(), outcome_.between.end(),
            [](const TunedCall& a, const TunedCall& b) {
              return std::pair(a.trial.operation, a.trial.bytes) <
                     std::pair(b.trial.operation, b.trial.bytes);
            });
  std::erase_if(outcome_.lines, [](const TunedCall& line) { return line.between; });
  return std::move(outcome_);
}

std::string TuneSession::More() const {
  return options_.samples > 0 && Passed() < options_.seconds ? "more --samples give it"
                                                             : "a larger --budget gives it";
}

double TuneSession::Passed() const { return options_.clock() - begin_; }

bool TuneSession::Show(Stage stage, const std::string& what) {
  const double share = std::min(1.0, Passed() / std::max(options_.seconds, 1e-9));
  stopped_ = !watch_(stage, share, what) || stopped_;
  return !stopped_;
}

Result<std::shared_ptr<Measurer>> TuneSession::Launch() {
  const double before = options_.clock();
  Result<std::shared_ptr<Measurer>> measurer = work_.source();
  if (measurer.ok()) launch_seconds_ = options_.clock() - before;
  last_taken_ = options_.clock();
  return measurer;
}

double TuneSession::BlockSeconds(bool proof) const {
  if (Iterations()) return kStepBlock;
  return proof ? kProofBlock : kSearchBlock;
}

int TuneSession::Rounds(size_t samples_per_round, int least, int most) const {
  if (options_.samples == 0) return most;
  const int64_t rounds =
      options_.samples / static_cast<int64_t>(std::max<size_t>(samples_per_round, 1));
  return static_cast<int>(std::clamp<int64_t>(rounds, least, most));
}

void TuneSession::Calibrate(bool proof) {
  search::CalibratedMeasurer::Options calibration;
  calibration.block_seconds = BlockSeconds(proof);
  calibration.check = !Iterations();
  calibrated_ = std::make_unique<search::CalibratedMeasurer>(measurer_.get(), calibration);
  marked_ = std::make_unique<measure::MarkedMeasurer>(calibrated_.get(), recorder_.get());
}

// Freshly started ranks may behave differently: a winner has to win on those as well.
Status TuneSession::StartAgain() {
  if (!options_.relaunch) return {};
  RETURN_IF_ERROR(recorder_->Flush());
  outcome_.launches += std::max(1, measurer_->launches());
  marked_.reset();
  calibrated_.reset();
  measurer_.reset();  // the old ranks end before new ones begin
  ASSIGN_OR_RETURN(measurer_, Launch());
  return {};
}

model::CallPlace TuneSession::PlaceOf(const Trial& trial) const {
  return {CollectiveOf(trial), outcome_.subject.nodes, outcome_.subject.ranks};
}

Result<dataset::StoreContents> TuneSession::ReadEarlier() {
  ASSIGN_OR_RETURN(dataset::StoreContents contents, work_.store->Read());
  std::vector<std::string> runs;
  for (const dataset::SampleRun& run : contents.runs) {
    if (run.source == "tune" || run.source == "verify") runs.push_back(run.id);
  }
  RETURN_IF_ERROR(measure::SettleUnfinished(work_.store, runs, &contents));
  return contents;
}

Status TuneSession::Start() {
  (void)Show(Stage::kStarting, "starting ranks");
  ASSIGN_OR_RETURN(measurer_, Launch());
  outcome_.subject = measurer_->subject();
  ASSIGN_OR_RETURN(call_cases_, work_.call_cases(outcome_.subject));
  if (call_cases_.empty()) return Invalid("there is nothing to measure");
  std::stable_sort(call_cases_.begin(), call_cases_.end(),
                   [](const CallCase& a, const CallCase& b) {
                     return std::pair(a.trial.operation, a.trial.bytes) <
                            std::pair(b.trial.operation, b.trial.bytes);
                   });
  asked_ = call_cases_.size();
  // Whatever hung or crashed before would do so again.
  ASSIGN_OR_RETURN(const dataset::StoreContents before, ReadEarlier());
  known_ = search::KnownFrom(before, call_cases_, outcome_.subject);
  size_t skipped = 0;
  for (std::vector<search::CandidateSamples>& of_case : known_) {
    for (search::CandidateSamples& evidence : of_case) {
      evidence.seconds.clear();
      if (evidence.outcome == dataset::SampleOutcome::kRefused) evidence.outcome = {};
      if (evidence.outcome != dataset::SampleOutcome::kFine) ++skipped;
    }
  }
  if (skipped > 0) {
    outcome_.notes.push_back(Count(skipped, "configuration") +
                             " that failed in an earlier run of this store left out");
  }
  return {};
}

Result<std::string> TuneSession::BeginRun(const char* source, const std::string& plan) {
  dataset::SampleRun run;
  run.id = dataset::NewRunId();
  run.source = source;
  run.origin = options_.command_line;
  run.started = static_cast<double>(std::time(nullptr));
  run.plan = plan;
  run.machine = outcome_.subject.machine;
  RETURN_IF_ERROR(work_.store->BeginRun(run));
  return run.id;
}

bool TuneSession::Take(size_t call_case, size_t candidate, const Measurement& measurement) {
  Trial trial = call_cases_[call_case].trial;
  trial.config = call_cases_[call_case].candidates[candidate].config;
  trial.environment = call_cases_[call_case].candidates[candidate].environment;
  dataset::Sample sample = measure::SampleOf(trial, outcome_.subject, measurement);
  sample.round = static_cast<int>(taken_[{call_case, candidate}]++);
  if (Status added = recorder_->Add(std::move(sample)); !added.ok()) trouble_ = added;
  ++outcome_.samples;
  // What a sample costs the user, with all that comes before and after its calls.
  cost_.resize(std::max(cost_.size(), call_cases_.size()));
  cost_[call_case] = options_.clock() - last_taken_;
  last_taken_ = options_.clock();
  const bool more = Show(Stage::kMeasuring, CallText(trial) + " " +
                                                ConfigText(outcome_.subject.library,
                                                           CollectiveOf(trial), trial.config));
  return trouble_.ok() && more;
}

Status TuneSession::Search() {
  const Result<std::string> run =
      BeginRun("tune", Format("{} calls; budget={:g} s", call_cases_.size(), options_.seconds));
  if (!run.ok()) return run.status();
  run_ = run.value();
  recorder_ = std::make_unique<dataset::Recorder>(work_.store, run_);
  Calibrate(false);
  RETURN_IF_ERROR(PoolSameChannels());
  if (stopped_) return {};
  const double until = options_.seconds * kSearchUntil;
  search::SearchOptions search;
  search.seconds = std::max(0.1, until - Passed());
  search.samples = options_.samples;
  search.seed = options_.seed;
  const Status searched = search::SearchAdaptively(
      marked_.get(), call_cases_, search,
      [&](size_t call_case, size_t candidate, const Measurement& measurement) {
        // A simulated cluster's clock is not the user's: the budget is in real time.
        return Take(call_case, candidate, measurement) && Passed() < until;
      },
      &known_);
  if (!trouble_.ok()) return trouble_;
  return searched;
}

std::vector<size_t> TuneSession::PromisingCandidates(size_t call_case) const {
  if (!predictor_.has_value()) return {};
  double best = INFINITY;
  for (const search::CandidateSamples& evidence : known_[call_case]) {
    if (!evidence.seconds.empty()) best = std::min(best, std::log(Median(evidence.seconds)));
  }
  const Trial& trial = call_cases_[call_case].trial;
  const model::Prediction prediction = predictor_->Look({PlaceOf(trial), trial.bytes, false, {}});
  const model::PredictedConfig* hope = nullptr;
  for (const model::PredictedConfig& one : prediction.candidates) {
    if (one.basis != model::Basis::kMeasured && one.estimate.log_seconds < best - kWorthALook &&
        (hope == nullptr || one.estimate.log_seconds < hope->estimate.log_seconds)) {
      hope = &one;
    }
  }
  for (size_t j = 1; hope != nullptr && j < call_cases_[call_case].candidates.size(); ++j) {
    const search::Candidate& candidate = call_cases_[call_case].candidates[j];
    if (candidate.config == hope->config && candidate.environment.empty() &&
        known_[call_case][j].outcome == dataset::SampleOutcome::kFine) {
      return {j};
    }
  }
  return {};
}

Result<model::Grid> TuneSession::ReadGrid() const {
  dataset::Filter filter;
  filter.run = run_;
  ASSIGN_OR_RETURN(const dataset::StoreContents contents, work_.store->Read(filter));
  model::GridOptions options;
  options.library = outcome_.subject.library;
  if (Iterations()) {
    options.kind = dataset::Point::Kind::kIteration;
    options.workload = measure::PointOf(call_cases_.front().trial, outcome_.subject).workload;
  }
  return model::MakeGrid(contents, options);
}

Status TuneSession::Learn() {
  (void)Show(Stage::kPlanning, "fitting a model");
  RETURN_IF_ERROR(recorder_->Flush());
  ASSIGN_OR_RETURN(const model::Grid grid, ReadGrid());
  // A model of whole steps would have nothing to go by but their few sizes.
  if (!options_.fit || Iterations()) return {};
  model::FitOptions fit;
  fit.seed = static_cast<uint32_t>(options_.seed);
  Result<model::Predictor> predictor = model::Predictor::Fit(grid, fit);
  if (predictor.ok()) {
    predictor_ = std::move(predictor).value();
  } else {
    outcome_.notes.push_back("planned from measurements alone: " + predictor.status().message());
  }
  return {};
}

Status TuneSession::EndSearch(bool whole) {
  if (recorder_ == nullptr) return {};
  const Status flushed = recorder_->Flush();
  recorder_.reset();
  outcome_.launches += std::max(1, measurer_->launches());
  const Status ended = work_.store->EndRun(
      run_, whole ? dataset::SampleRun::State::kDone : dataset::SampleRun::State::kInterrupted);
  return flushed.ok() ? ended : flushed;
}

Status TuneSession::Plan() {
  std::vector<std::vector<size_t>> finalists;
  size_t samples_per_round = 0;
  for (size_t i = 0; i < call_cases_.size(); ++i) {
    finalists.push_back(
        Finalists(call_cases_[i], known_[i], PromisingCandidates(i), kMostFinalists));
    samples_per_round += finalists.back().size();
  }
  const bool between = options_.between && !Iterations();
  RETURN_IF_ERROR(StartAgain());
  Calibrate(true);
  FinalRound round(call_cases_, finalists);
  const double until = options_.seconds * (between ? kFinalRoundUntil : kBetweenUntil);
  RETURN_IF_ERROR(RunFinal(&round, 0, FinalLaunches(), until, samples_per_round));
  if (stopped_) return {};
  winners_ = round.Winners(FinalRoundOptions().margin);
  if (between) RETURN_IF_ERROR(MeasureBetween(options_.seconds * kBetweenUntil));
  if (stopped_) return {};
  RETURN_IF_ERROR(EndSearch(true));
  NoteFailures();
  for (size_t i = 0; i < call_cases_.size(); ++i) AddLine(i, winners_[i]);
  FindNeighbours();
  return {};
}

void TuneSession::NoteFailures() {
  std::vector<std::pair<std::string, std::vector<std::string>>> failures;
  for (size_t i = 0; i < call_cases_.size(); ++i) {
    const Trial& trial = call_cases_[i].trial;
    for (size_t j = 0; j < call_cases_[i].candidates.size(); ++j) {
      const dataset::SampleOutcome outcome = known_[i][j].outcome;
      if (outcome == dataset::SampleOutcome::kFine || outcome == dataset::SampleOutcome::kRefused)
        continue;
      const std::string what = ConfigText(outcome_.subject.library, CollectiveOf(trial),
                                          call_cases_[i].candidates[j].config) +
                               ": " + dataset::OutcomeName(outcome) + " at ";
      auto found = std::find_if(failures.begin(), failures.end(),
                                [&](const auto& one) { return one.first == what; });
      if (found == failures.end()) found = failures.insert(found, {what, {}});
      found->second.push_back(CallText(trial));
    }
  }
  for (const auto& [what, calls] : failures) outcome_.failures.push_back(what + Join(calls, ", "));
}

void TuneSession::AddLine(size_t call_case, const Winner& winner) {
  TunedCall line;
  line.between = call_case >= asked_;
  line.trial = call_cases_[call_case].trial;
  line.weight = options_.weight ? options_.weight(line.trial) : 1;
  for (const search::CandidateSamples& evidence : known_[call_case]) {
    line.tried += evidence.seconds.empty() ? 0 : 1;
    line.failed += evidence.outcome == dataset::SampleOutcome::kFine ? 0 : 1;
  }
  const search::CandidateSamples& own = known_[call_case].front();
  line.library.outcome = own.outcome;
  if (own.seconds.empty()) {
    line.ending = CallOutcome::kNoDefault;
    line.no_time = own.outcome == dataset::SampleOutcome::kFine;
    line.why = line.no_time ? "it was not measured in time; " + More()
                            : "the library's own choice could not be measured";
    outcome_.lines.push_back(std::move(line));
    return;
  }
  line.library.rounds = own.seconds;
  line.library.Conclude({});
  const std::vector<search::Candidate>& candidates = call_cases_[call_case].candidates;
  if (winner.candidate != 0) {
    line.planned = candidates[winner.candidate].config;
    line.expected_library = winner.library_default;
    line.expected_tuned = winner.seconds;
    if (winner.second != 0) {
      line.second = candidates[winner.second].config;
      line.second_seconds = winner.second_seconds;
    }
  } else if (winner.runner_up == 0) {
    const std::vector<search::CandidateSamples>& known = known_[call_case];
    line.no_time =
        std::any_of(known.begin() + 1, known.end(), [](const search::CandidateSamples& one) {
          return one.outcome == dataset::SampleOutcome::kFine;
        });
    line.why = line.no_time ? "there was no time to compare others; " + More()
                            : "nothing else can run here";
  } else {
    const double gain = winner.library_default / winner.runner_up_seconds;
    line.why = "the best of the others, " +
               ConfigText(outcome_.subject.library, CollectiveOf(line.trial),
                          candidates[winner.runner_up].config) +
               (gain > 1 ? Format(", is only {:.1f} % faster", 100 * (gain - 1))
                         : Format(", is {:.1f} % slower", 100 * (1 / gain - 1)));
    // With a budget in samples there is no time to run out of.
    if (options_.samples == 0 && !line.between) line.untried = UntriedPairs(call_case);
    if (line.untried > 0) {
      line.why += Format("; {} had no time, {}",
                         Count(line.untried, "other algorithm and protocol pair"), More());
    }
  }
  outcome_.lines.push_back(std::move(line));
}

Result<TuneOutcome> Tune(const TuneInputs& work, const SessionOptions& options,
                         const ProgressCallback& watch) {
  return TuneSession(work, options, watch).Run();
}

}  // namespace diapason::tune
