#include "tune/session.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"
#include "comm/check.h"
#include "domain/decision.h"
#include "tune/session_state.h"

namespace diapason::tune {
namespace {

using measure::Contest;
using measure::Instrument;
using measure::Reading;
using measure::Trial;

// How the budget is spent: until then; what is left is for the proof.
constexpr double kSearchUntil = 0.36;
constexpr double kRunoffUntil = 0.64;
// Of every contest, with the default; a model may send one more.
constexpr size_t kMostFinalists = 6;
// What nobody has measured has to be predicted to be this much faster than what was.
constexpr double kWorthALook = 0.03;
// Blocks of calls are long against the clock and short against drift; where it counts they are
// longer, since starting one costs as much as some calls. Of an iteration a few steps.
constexpr double kSearchBlock = 0.003;
constexpr double kProofBlock = 0.008;
constexpr double kStepBlock = 0.06;

double Since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

Collective CollectiveOf(const Trial& trial) {
  return comm::CollectiveOf(trial.operation).value_or(Collective::kAllReduce);
}

std::string CallText(const Trial& trial) {
  return measure::CollectiveText(trial.operation) + " " + FormatBytes(trial.bytes);
}

Result<Outcome> Session::Run() {
  Status status = Start();
  // Who interrupts it gets what was measured, and nothing that was not proven.
  for (Status (Session::*step)() : {&Session::Search, &Session::Learn, &Session::Plan,
                                    &Session::Prove, &Session::ProveTogether, &Session::Write}) {
    if (status.ok() && !stopped_) status = (this->*step)();
  }
  if (Status ended = EndSearch(false); status.ok()) status = ended;
  if (!status.ok()) return status;
  outcome_.seconds = Passed();
  outcome_.interrupted = stopped_;
  return std::move(outcome_);
}

double Session::Passed() const { return Since(begin_); }

bool Session::Show(Stage stage, const std::string& what) {
  const double share = std::min(1.0, Passed() / std::max(options_.seconds, 1e-9));
  stopped_ = !watch_(stage, share, what) || stopped_;
  return !stopped_;
}

Result<std::shared_ptr<Instrument>> Session::Launch() {
  const auto before = std::chrono::steady_clock::now();
  Result<std::shared_ptr<Instrument>> instrument = work_.source();
  if (instrument.ok()) launch_seconds_ = Since(before);
  return instrument;
}

double Session::BlockSeconds(bool proof) const {
  if (Iterations()) return kStepBlock;
  return proof ? kProofBlock : kSearchBlock;
}

int Session::Rounds(size_t samples_per_round, int least, int most) const {
  if (options_.samples == 0) return most;
  const int64_t rounds =
      options_.samples / static_cast<int64_t>(std::max<size_t>(samples_per_round, 1));
  return static_cast<int>(std::clamp<int64_t>(rounds, least, most));
}

void Session::Calibrate(bool proof) {
  measure::CalibratedInstrument::Options calibration;
  calibration.block_seconds = BlockSeconds(proof);
  calibration.check = !Iterations();
  calibrated_ = std::make_unique<measure::CalibratedInstrument>(instrument_.get(), calibration);
  marked_ = std::make_unique<measure::MarkedInstrument>(calibrated_.get(), recorder_.get());
}

// Ranks that were started once more may fare otherwise: whoever wins has to win with those as well.
Status Session::StartAgain() {
  if (!options_.relaunch) return {};
  if (Status flushed = recorder_->Flush(); !flushed.ok()) return flushed;
  outcome_.launches += std::max(1, instrument_->launches());
  marked_.reset();
  calibrated_.reset();
  instrument_.reset();  // the old ranks end before new ones begin
  Result<std::shared_ptr<Instrument>> instrument = Launch();
  if (!instrument.ok()) return instrument.status();
  instrument_ = std::move(instrument).value();
  return {};
}

model::Place Session::PlaceOf(const Trial& trial) const {
  return {CollectiveOf(trial), outcome_.subject.nodes, outcome_.subject.ranks};
}

Result<dataset::Contents> Session::ReadEarlier() {
  Result<dataset::Contents> contents = work_.store->Read();
  if (!contents.ok()) return contents;
  std::vector<std::string> runs;
  for (const dataset::Run& run : contents.value().runs) {
    if (run.source == "tune" || run.source == "verify") runs.push_back(run.id);
  }
  const Result<std::vector<dataset::Sample>> blamed =
      measure::SettleUnfinished(work_.store, runs, &contents.value());
  if (!blamed.ok()) return blamed.status();
  return contents;
}

Status Session::Start() {
  (void)Show(Stage::kStarting, "starting ranks");
  Result<std::shared_ptr<Instrument>> instrument = Launch();
  if (!instrument.ok()) return instrument.status();
  instrument_ = std::move(instrument).value();
  outcome_.subject = instrument_->subject();
  Result<std::vector<Contest>> contests = work_.contests(outcome_.subject);
  if (!contests.ok()) return contests.status();
  contests_ = std::move(contests).value();
  if (contests_.empty()) return Invalid("there is nothing to measure");
  std::stable_sort(contests_.begin(), contests_.end(), [](const Contest& a, const Contest& b) {
    return std::pair(a.trial.operation, a.trial.bytes) <
           std::pair(b.trial.operation, b.trial.bytes);
  });
  // Whatever hung or crashed before would do so again.
  const Result<dataset::Contents> before = ReadEarlier();
  if (!before.ok()) return before.status();
  known_ = measure::KnownFrom(before.value(), contests_, outcome_.subject);
  size_t skipped = 0;
  for (std::vector<measure::Evidence>& of_contest : known_) {
    for (measure::Evidence& evidence : of_contest) {
      evidence.seconds.clear();
      if (evidence.outcome == dataset::Outcome::kRefused) evidence.outcome = {};
      if (evidence.outcome != dataset::Outcome::kFine) ++skipped;
    }
  }
  if (skipped > 0) {
    outcome_.notes.push_back(Count(skipped, "configuration") +
                             " that failed in an earlier run of this store left out");
  }
  return {};
}

Result<std::string> Session::BeginRun(const char* source, const std::string& plan) {
  dataset::Run run;
  run.id = dataset::NewRunId();
  run.source = source;
  run.origin = options_.command_line;
  run.started = static_cast<double>(std::time(nullptr));
  run.plan = plan;
  run.machine = outcome_.subject.machine;
  const Result<bool> begun = work_.store->BeginRun(run);
  if (!begun.ok()) return begun.status();
  return run.id;
}

bool Session::Take(size_t contest, size_t contender, const Reading& reading) {
  Trial trial = contests_[contest].trial;
  trial.config = contests_[contest].contenders[contender].config;
  trial.environment = contests_[contest].contenders[contender].environment;
  dataset::Sample sample = measure::SampleOf(trial, outcome_.subject, reading);
  sample.round = static_cast<int>(taken_[{contest, contender}]++);
  if (Status added = recorder_->Add(std::move(sample)); !added.ok()) trouble_ = added;
  ++outcome_.samples;
  const bool more = Show(Stage::kMeasuring, CallText(trial) + " " +
                                                ConfigText(outcome_.subject.library,
                                                           CollectiveOf(trial), trial.config));
  return trouble_.ok() && more;
}

Status Session::Search() {
  const Result<std::string> run =
      BeginRun("tune", Format("%zu calls; budget=%g s", contests_.size(), options_.seconds));
  if (!run.ok()) return run.status();
  run_ = run.value();
  recorder_ = std::make_unique<dataset::Recorder>(work_.store, run_);
  Calibrate(false);
  const double until = options_.seconds * kSearchUntil;
  measure::SearchOptions search;
  search.seconds = std::max(0.1, until - Passed());
  search.samples = options_.samples;
  search.seed = options_.seed;
  const Status searched = measure::SearchAdaptively(
      marked_.get(), contests_, search,
      [&](size_t contest, size_t contender, const Reading& reading) {
        // The simulated cluster's clock is not the one that somebody waits by.
        return Take(contest, contender, reading) && Passed() < until;
      },
      &known_);
  if (!trouble_.ok()) return trouble_;
  return searched;
}

std::vector<size_t> Session::Hopefuls(size_t contest) const {
  if (!predictor_.has_value()) return {};
  double best = INFINITY;
  for (const measure::Evidence& evidence : known_[contest]) {
    if (!evidence.seconds.empty()) best = std::min(best, std::log(Median(evidence.seconds)));
  }
  const Trial& trial = contests_[contest].trial;
  const model::Outlook outlook = predictor_->Look({PlaceOf(trial), trial.bytes, false, {}});
  const model::Candidate* hope = nullptr;
  for (const model::Candidate& one : outlook.candidates) {
    if (one.basis != model::Basis::kMeasured && one.estimate.log_seconds < best - kWorthALook &&
        (hope == nullptr || one.estimate.log_seconds < hope->estimate.log_seconds)) {
      hope = &one;
    }
  }
  for (size_t j = 1; hope != nullptr && j < contests_[contest].contenders.size(); ++j) {
    const measure::Contender& contender = contests_[contest].contenders[j];
    if (contender.config == hope->config && contender.environment.empty() &&
        known_[contest][j].outcome == dataset::Outcome::kFine) {
      return {j};
    }
  }
  return {};
}

Result<model::Grid> Session::ReadGrid() const {
  dataset::Filter filter;
  filter.run = run_;
  const Result<dataset::Contents> contents = work_.store->Read(filter);
  if (!contents.ok()) return contents.status();
  model::GridOptions options;
  options.library = outcome_.subject.library;
  if (Iterations()) {
    options.kind = dataset::Point::Kind::kIteration;
    options.workload = measure::PointOf(contests_.front().trial, outcome_.subject).workload;
  }
  return model::MakeGrid(contents.value(), options);
}

Status Session::Learn() {
  (void)Show(Stage::kPlanning, "fitting a model");
  if (Status flushed = recorder_->Flush(); !flushed.ok()) return flushed;
  const Result<model::Grid> grid = ReadGrid();
  if (!grid.ok()) return grid.status();
  // A model of whole steps would have nothing to go by but their few sizes.
  if (!options_.fit || Iterations()) return {};
  model::FitOptions fit;
  fit.seed = static_cast<uint32_t>(options_.seed);
  fit.check_transfer = false;
  Result<model::Predictor> predictor = model::Predictor::Fit(grid.value(), fit);
  if (predictor.ok()) {
    predictor_ = std::move(predictor).value();
  } else {
    outcome_.notes.push_back("planned from measurements alone: " + predictor.status().message());
  }
  return {};
}

Status Session::EndSearch(bool whole) {
  if (recorder_ == nullptr) return {};
  const Status flushed = recorder_->Flush();
  recorder_.reset();
  outcome_.launches += std::max(1, instrument_->launches());
  const Status ended = work_.store->EndRun(
      run_, whole ? dataset::Run::State::kDone : dataset::Run::State::kInterrupted);
  return flushed.ok() ? ended : flushed;
}

Status Session::Plan() {
  std::vector<std::vector<size_t>> finalists;
  size_t samples_per_round = 0;
  for (size_t i = 0; i < contests_.size(); ++i) {
    finalists.push_back(Finalists(contests_[i], known_[i], Hopefuls(i), kMostFinalists));
    samples_per_round += finalists.back().size();
  }
  if (Status started = StartAgain(); !started.ok()) return started;
  Calibrate(true);
  RunoffOptions runoff;
  runoff.seconds = std::max(0.1, options_.seconds * kRunoffUntil - Passed());
  runoff.most_rounds = Rounds(samples_per_round, runoff.least_rounds, runoff.most_rounds);
  const Result<std::vector<Winner>> winners =
      RunOff(marked_.get(), contests_, finalists, runoff,
             [&](size_t contest, size_t contender, const Reading& reading) {
               measure::Evidence& evidence = known_[contest][contender];
               if (reading.outcome == dataset::Outcome::kFine) {
                 evidence.seconds.push_back(reading.seconds);
               } else {
                 evidence.outcome = reading.outcome;
               }
               return Take(contest, contender, reading);
             });
  for (const Status& status : {trouble_, winners.status()}) {
    if (!status.ok()) return status;
  }
  if (stopped_) return {};
  if (Status ended = EndSearch(true); !ended.ok()) return ended;
  NoteFailures();
  for (size_t i = 0; i < contests_.size(); ++i) AddLine(i, winners.value()[i]);
  return {};
}

void Session::NoteFailures() {
  std::vector<std::pair<std::string, std::vector<std::string>>> failures;
  for (size_t i = 0; i < contests_.size(); ++i) {
    const Trial& trial = contests_[i].trial;
    for (size_t j = 0; j < contests_[i].contenders.size(); ++j) {
      const dataset::Outcome outcome = known_[i][j].outcome;
      if (outcome == dataset::Outcome::kFine || outcome == dataset::Outcome::kRefused) continue;
      const std::string what = ConfigText(outcome_.subject.library, CollectiveOf(trial),
                                          contests_[i].contenders[j].config) +
                               ": " + dataset::OutcomeName(outcome) + " at ";
      auto found = std::find_if(failures.begin(), failures.end(),
                                [&](const auto& one) { return one.first == what; });
      if (found == failures.end()) found = failures.insert(found, {what, {}});
      found->second.push_back(CallText(trial));
    }
  }
  for (const auto& [what, calls] : failures) outcome_.failures.push_back(what + Join(calls, ", "));
}

void Session::AddLine(size_t contest, const Winner& winner) {
  Line line;
  line.trial = contests_[contest].trial;
  line.weight = options_.weight ? options_.weight(line.trial) : 1;
  for (const measure::Evidence& evidence : known_[contest]) {
    line.tried += evidence.seconds.empty() ? 0 : 1;
    line.failed += evidence.outcome == dataset::Outcome::kFine ? 0 : 1;
  }
  const measure::Evidence& own = known_[contest].front();
  line.library.outcome = own.outcome;
  if (own.seconds.empty()) {
    line.ending = Ending::kNoDefault;
    line.no_time = own.outcome == dataset::Outcome::kFine;
    line.why = line.no_time ? "there was no time to measure it; a larger --budget gives it"
                            : "the library's own choice could not be measured";
    outcome_.lines.push_back(std::move(line));
    return;
  }
  line.library.rounds = own.seconds;
  line.library.Conclude({});
  const std::vector<measure::Contender>& contenders = contests_[contest].contenders;
  if (winner.contender != 0) {
    line.planned = contenders[winner.contender].config;
    line.expected_library = winner.standard;
    line.expected_tuned = winner.seconds;
  } else if (winner.runner_up == 0) {
    const std::vector<measure::Evidence>& known = known_[contest];
    line.no_time = std::any_of(known.begin() + 1, known.end(), [](const measure::Evidence& one) {
      return one.outcome == dataset::Outcome::kFine;
    });
    line.why = line.no_time ? "there was no time to compare others; a larger --budget gives it"
                            : "nothing else can run here";
  } else {
    const double gain = winner.standard / winner.runner_up_seconds;
    line.why = "the best of the others, " +
               ConfigText(outcome_.subject.library, CollectiveOf(line.trial),
                          contenders[winner.runner_up].config) +
               (gain > 1 ? Format(", is only %.1f %% faster", 100 * (gain - 1))
                         : Format(", is %.1f %% slower", 100 * (1 / gain - 1)));
  }
  outcome_.lines.push_back(std::move(line));
}

const char* EndingName(Ending ending) {
  switch (ending) {
    case Ending::kTuned:
      return "tuned";
    case Ending::kNothingBetter:
      return "nothing better";
    case Ending::kNotConfirmed:
      return "not confirmed";
    case Ending::kFailed:
      return "failed";
    case Ending::kNoDefault:
      break;
  }
  return "no default";
}

double Line::Gain() const { return ending == Ending::kTuned ? check->gain : 1; }

size_t Outcome::Tuned() const {
  return static_cast<size_t>(std::count_if(
      lines.begin(), lines.end(), [](const Line& line) { return line.ending == Ending::kTuned; }));
}

bool Outcome::Undecided() const {
  return Tuned() == 0 &&
         std::all_of(lines.begin(), lines.end(), [](const Line& line) { return line.no_time; });
}

double Outcome::MeanGain() const {
  double sum = 0;
  size_t count = 0;
  for (const Line& line : lines) {
    if (line.ending == Ending::kNoDefault) continue;
    sum += std::log(line.Gain());
    ++count;
  }
  return count == 0 ? 1 : std::exp(sum / static_cast<double>(count));
}

Outcome::Total Outcome::Weighted() const {
  Total total;
  for (const Line& line : lines) {
    if (line.ending == Ending::kNoDefault) continue;
    total.before += line.weight * line.library.median;
    total.after += line.weight * line.library.median / line.Gain();
  }
  return total;
}

Result<Outcome> Tune(const Work& work, const Options& options, const Watch& watch) {
  return Session(work, options, watch).Run();
}

}  // namespace diapason::tune
