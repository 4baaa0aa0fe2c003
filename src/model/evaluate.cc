#include "model/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "model/splits.h"
#include "policy/table.h"

namespace diapason::model {
namespace {

// A difference that counts.
constexpr double kNoticed = 0.01;

std::string Where(const CallPlace& place, uint64_t bytes, double value) {
  return Format("{} at {} ({:.3f})", PlaceText(place), FormatBytes(bytes), value);
}

// Only measured configurations can be scored.
void KeepMeasured(const MeasuredSize& context, Prediction* prediction) {
  std::erase_if(prediction->candidates, [&](const PredictedConfig& candidate) {
    return context.Find(candidate.config) == nullptr;
  });
}

std::vector<ConfigFamily> FamiliesOf(const MeasuredSize& context) {
  std::set<ConfigFamily> families;
  for (const MeasuredConfig& cell : context.cells) {
    if (!cell.config.IsDefault()) families.insert(FamilyOf(cell.config));
  }
  return {families.begin(), families.end()};
}

Config AskPredictor(const Predictor& predictor, const CallPlace& place, const MeasuredSize& context,
                    const ChoiceOptions& options) {
  Prediction prediction = predictor.Look({place, context.bytes, true, FamiliesOf(context)});
  KeepMeasured(context, &prediction);
  const ModelChoice choice = Choose(prediction, options);
  return choice.leave_default || !choice.best.has_value() ? Config{} : choice.best->config;
}

Config AskLines(const MeasuredPlace* known, const MeasuredSize& context, bool* answered) {
  Config chosen;
  double best = INFINITY;
  *answered = false;
  if (known == nullptr) return chosen;
  for (const MeasuredConfig& cell : context.cells) {
    const std::optional<Estimate> line = Interpolate(*known, context.bytes, cell.config);
    if (!line.has_value() || line->log_seconds >= best) continue;
    best = line->log_seconds;
    chosen = cell.config;
    *answered = true;
  }
  return chosen;
}

Config AskKnown(const MeasuredPlace* known, const MeasuredSize& context, bool* answered) {
  Config chosen;
  *answered = false;
  double best = INFINITY;
  if (known == nullptr) return chosen;
  for (const MeasuredSize& one : known->contexts) {
    if (one.bytes != context.bytes) continue;
    for (const MeasuredConfig& cell : one.cells) {
      if (cell.log_seconds >= best) continue;
      best = cell.log_seconds;
      chosen = cell.config;
      *answered = true;
    }
  }
  return chosen;
}

Config Fastest(const MeasuredSize& context) {
  const MeasuredConfig* best = &context.cells.front();
  for (const MeasuredConfig& cell : context.cells) {
    if (cell.log_seconds < best->log_seconds) best = &cell;
  }
  return best->config;
}

std::vector<ConfigFamily> AllFamilies(const Grid& grid) {
  std::set<ConfigFamily> families;
  for (const MeasuredPlace& scene : grid.scenes) {
    for (const Config& config : ConfigsOf(scene)) families.insert(FamilyOf(config));
  }
  return {families.begin(), families.end()};
}

// Fits each model once and asks all questions.
Status Run(const Grid& grid, const EvaluateOptions& options, const Part& part,
           std::vector<Score>* scores) {
  FitOptions fit = options.fit;
  fit.families = AllFamilies(grid);
  fit.objective = Objective::kTime;
  const bool learn = !part.known.scenes.empty();
  std::optional<Predictor> ours;
  std::optional<Predictor> original;
  if (learn) {
    ASSIGN_OR_RETURN(ours, Predictor::Fit(part.known, fit));
    fit.objective = Objective::kBusBandwidth;
    ASSIGN_OR_RETURN(original, Predictor::Fit(part.known, fit));
  }
  for (Score& score : *scores) {
    ChoiceScore tally;
    for (const Part::Question& question : part.questions) {
      const MeasuredPlace& scene = grid.scenes[question.scene];
      const MeasuredSize& context = scene.contexts[question.context];
      const MeasuredPlace* const known = part.known.Find(scene.place);
      Config chosen;
      bool answered = true;
      switch (score.chooser) {
        case ChooserKind::kOriginal:
          if (original.has_value()) {
            chosen = AskPredictor(*original, scene.place, context, options.choice);
          }
          break;
        case ChooserKind::kInterpolate:
          chosen = AskLines(known, context, &answered);
          break;
        case ChooserKind::kBestKnown:
          chosen = AskKnown(known, context, &answered);
          break;
        case ChooserKind::kOurs:
          if (ours.has_value()) {
            chosen = AskPredictor(*ours, scene.place, context, options.choice);
          }
          break;
        case ChooserKind::kOracle:
          chosen = Fastest(context);
          break;
        default:
          break;
      }
      ChoiceScore one;
      if (!answered) one.unanswered = 1;
      Record(scene.place, context, chosen, &one);
      tally.Add(one);
      score.each.push_back({scene.place, context.bytes, std::move(one)});
    }
    score.parts.push_back(tally);
    score.all.Add(tally);
  }
  return {};
}

}  // namespace

Result<LeaveOut> ParseLeaveOut(const std::string& name) {
  if (name == "sizes") return LeaveOut::kSizes;
  if (name == "nodes") return LeaveOut::kNodes;
  if (name == "configs") return LeaveOut::kConfigs;
  if (name == "cells") return LeaveOut::kCells;
  return Invalid("unknown '" + name + "' to leave out" +
                 Suggestion(name, {"sizes", "nodes", "configs", "cells"}));
}

const char* ChooserName(ChooserKind chooser) {
  switch (chooser) {
    case ChooserKind::kDefault:
      return "default";
    case ChooserKind::kOriginal:
      return "busbw predictor";
    case ChooserKind::kInterpolate:
      return "interpolation";
    case ChooserKind::kBestKnown:
      return "best known";
    case ChooserKind::kOurs:
      return "diapason";
    case ChooserKind::kPolicy:
      return "policy";
    case ChooserKind::kOracle:
      return "oracle";
  }
  return "?";
}

double ChoiceScore::Mean() const {
  return contexts == 0 ? 1 : std::exp(sum_log / static_cast<double>(contexts));
}

double ChoiceScore::MeanAgainstDefault() const {
  return with_default == 0 ? 1 : std::exp(sum_log_default / static_cast<double>(with_default));
}

void ChoiceScore::Add(const ChoiceScore& other) {
  if (other.contexts > 0 && (contexts == 0 || other.worst < worst)) {
    worst = other.worst;
    worst_at = other.worst_at;
  }
  if (other.worst_default < worst_default) {
    worst_default = other.worst_default;
    worst_default_at = other.worst_default_at;
  }
  sum_log += other.sum_log;
  sum_log_default += other.sum_log_default;
  contexts += other.contexts;
  with_default += other.with_default;
  improved += other.improved;
  harmed += other.harmed;
  unanswered += other.unanswered;
}

void Record(const CallPlace& place, const MeasuredSize& context, const Config& chosen,
            ChoiceScore* tally) {
  double best = INFINITY;
  double worst = -std::numeric_limits<double>::infinity();
  for (const MeasuredConfig& cell : context.cells) {
    best = std::min(best, cell.log_seconds);
    worst = std::max(worst, cell.log_seconds);
  }
  const MeasuredConfig* const library_default =
      context.library_default.has_value() ? &context.cells[*context.library_default] : nullptr;
  const MeasuredConfig* cell = context.Find(chosen);
  if (cell == nullptr) cell = library_default;
  // If the default is chosen and was not measured, its time is unknown: counted as the worst.
  const double time = cell == nullptr ? worst : cell->log_seconds;
  const double fraction = std::exp(best - time);
  ++tally->contexts;
  tally->sum_log += best - time;
  if (fraction < tally->worst) {
    tally->worst = fraction;
    tally->worst_at = Where(place, context.bytes, fraction);
  }
  if (library_default == nullptr || cell == nullptr) return;
  ++tally->with_default;
  const double gain = library_default->log_seconds - time;
  tally->sum_log_default += gain;
  // Differences within the rounding of digits are neither loss nor gain.
  const double hidden =
      cell == library_default ? 0 : std::log1p(cell->coarse) + std::log1p(library_default->coarse);
  const double sure = gain > 0 ? std::max(0.0, gain - hidden) : std::min(0.0, gain + hidden);
  if (std::exp(sure) < tally->worst_default) {
    tally->worst_default = std::exp(sure);
    tally->worst_default_at = Where(place, context.bytes, std::exp(sure));
  }
  if (sure > std::log1p(kNoticed)) ++tally->improved;
  if (sure < -std::log1p(kNoticed)) ++tally->harmed;
}

std::optional<Estimate> Interpolate(const MeasuredPlace& scene, uint64_t bytes,
                                    const Config& config) {
  const MeasuredConfig* below = nullptr;
  const MeasuredConfig* above = nullptr;
  uint64_t low = 0;
  uint64_t high = 0;
  for (const MeasuredSize& context : scene.contexts) {
    const MeasuredConfig* const cell = context.Find(config);
    if (cell == nullptr) continue;
    if (context.bytes <= bytes) {
      below = cell;
      low = context.bytes;
    }
    if (context.bytes >= bytes) {
      above = cell;
      high = context.bytes;
      break;
    }
  }
  if (below == nullptr || above == nullptr) return {};
  if (low == high) return Estimate{below->log_seconds, below->noise};
  const double weight = (LogBytes(bytes) - LogBytes(low)) / (LogBytes(high) - LogBytes(low));
  return Estimate{(1 - weight) * below->log_seconds + weight * above->log_seconds,
                  (1 - weight) * below->noise + weight * above->noise};
}

Result<Evaluation> Evaluate(const Grid& grid, const EvaluateOptions& options) {
  std::vector<Part> parts;
  std::vector<ChooserKind> choosers = {ChooserKind::kDefault, ChooserKind::kOriginal};
  switch (options.leave_out) {
    case LeaveOut::kSizes:
      parts = WithoutSizes(grid);
      choosers.push_back(ChooserKind::kInterpolate);
      break;
    case LeaveOut::kNodes:
      parts = WithoutNodes(grid);
      if (parts.size() < 2) {
        return Invalid("the data have one node count only: nothing can be left out");
      }
      choosers.push_back(ChooserKind::kInterpolate);
      break;
    case LeaveOut::kConfigs:
    case LeaveOut::kCells:
      parts =
          WithoutConfigs(grid, options.draws, options.known, options.leave_out == LeaveOut::kCells);
      choosers.push_back(ChooserKind::kInterpolate);
      choosers.push_back(ChooserKind::kBestKnown);
      break;
  }
  choosers.push_back(ChooserKind::kOurs);
  choosers.push_back(ChooserKind::kOracle);
  Evaluation evaluation;
  for (const ChooserKind chooser : choosers) evaluation.scores.push_back({chooser, {}, {}, {}});
  size_t questions = 0;
  for (const Part& part : parts) questions += part.questions.size();
  if (questions == 0) {
    return Invalid("no size lies between two others: nothing can be left out");
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (options.progress) options.progress(i, parts.size());
    evaluation.parts.push_back(parts[i].name);
    RETURN_IF_ERROR(Run(grid, options, parts[i], &evaluation.scores));
  }
  return evaluation;
}

Result<Evaluation> EvaluatePolicy(const Grid& grid, const policy::Policy& policy, size_t* unknown) {
  if (policy.library != grid.library) {
    return Invalid("the policy is for " + std::string(LibraryTitle(policy.library)) +
                   ", the data are of " + std::string(LibraryTitle(grid.library)));
  }
  Evaluation evaluation;
  evaluation.parts = {"all"};
  for (const ChooserKind chooser :
       {ChooserKind::kDefault, ChooserKind::kPolicy, ChooserKind::kOracle}) {
    evaluation.scores.push_back({chooser, {}, {{}}, {}});
  }
  *unknown = 0;
  for (const MeasuredPlace& scene : grid.scenes) {
    policy::DecisionTable::Options shape;
    shape.shape = {scene.place.nodes, scene.place.ranks};
    const policy::DecisionTable table(policy, shape);
    for (const MeasuredSize& context : scene.contexts) {
      for (Score& score : evaluation.scores) {
        Config chosen;
        if (score.chooser == ChooserKind::kOracle) chosen = Fastest(context);
        if (score.chooser == ChooserKind::kPolicy) {
          const auto* entry = table.Find({scene.place.collective, context.bytes, 1, 0});
          if (entry != nullptr) chosen = entry->config();
          if (entry != nullptr && context.Find(chosen) == nullptr) ++*unknown;
        }
        ChoiceScore one;
        Record(scene.place, context, chosen, &one);
        score.parts[0].Add(one);
        score.each.push_back({scene.place, context.bytes, std::move(one)});
      }
    }
  }
  for (Score& score : evaluation.scores) score.all = score.parts[0];
  return evaluation;
}

}  // namespace diapason::model
