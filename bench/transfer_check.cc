#include "transfer_check.h"

#include <cmath>
#include <cstdio>
#include <map>

#include "base/text.h"
#include "model/evaluate.h"
#include "model/plan.h"
#include "model/splits.h"
#include "model/transfer.h"
#include "plan_grids.h"
#include "policy/table.h"
#include "report/table.h"

namespace diapason::model {
namespace {

constexpr double kNinety = 1.6449;
constexpr uint64_t kMadeGrids = 5;
constexpr double kHarm = 0.95;

struct Figures {
  ChoiceScore library;
  ChoiceScore model;
  ChoiceScore plan;
  size_t changed = 0;
  size_t harmful = 0;
  size_t plan_changed = 0;
  size_t plan_harmful = 0;
  size_t cells = 0;
  size_t gains = 0;
  size_t times = 0;
};

size_t Harmful(const MeasuredSize& context, const Config& config) {
  const MeasuredConfig* const cell = context.Find(config);
  if (!context.library_default.has_value() || cell == nullptr) return 0;
  return context.cells[*context.library_default].log_seconds - cell->log_seconds < std::log(kHarm)
             ? 1
             : 0;
}

void CountIntervals(const Prediction& prediction, const MeasuredSize& context, Figures* figures) {
  if (!context.library_default.has_value()) return;
  const MeasuredConfig& own = context.cells[*context.library_default];
  for (const PredictedConfig& one : prediction.candidates) {
    const MeasuredConfig* const cell = context.Find(one.config);
    const auto gain = GainOf(prediction, one);
    if (cell == nullptr || !gain.has_value()) continue;
    ++figures->cells;
    const double centre = std::log(gain->high * gain->low) / 2;
    const double half = std::log(gain->high / gain->low) / 2;
    const double noise = kNinety * Together(cell->noise, own.noise);
    const double truth = own.log_seconds - cell->log_seconds;
    figures->gains += std::fabs(truth - centre) <= Together(half, noise) ? 1 : 0;
    const double doubt = Together(Together(one.estimate.doubt, prediction.time_bend), cell->noise);
    figures->times +=
        std::fabs(one.estimate.log_seconds - cell->log_seconds) <= kNinety * doubt ? 1 : 0;
  }
}

// "between", "the smallest", "the largest": where the number left out lies.
std::string Where(const Grid& known, const CallPlace& place) {
  bool below = false;
  bool above = false;
  for (const MeasuredPlace& scene : known.scenes) {
    if (scene.place.collective != place.collective || scene.place.nodes == 1) continue;
    below = below || scene.place.nodes < place.nodes;
    above = above || scene.place.nodes > place.nodes;
  }
  return below && above ? "between"
         : below        ? "the largest"
         : above        ? "the smallest"
                        : "several alone";
}

void CheckGrid(const Grid& grid, std::map<std::string, Figures>* found) {
  for (const Part& part : WithoutNodes(grid)) {
    if (part.known.scenes.empty()) continue;
    const Transfer transfer(part.known.scenes);
    const Result<PlannedPolicy> plan = MakePlan(&part.known, nullptr, {});
    if (!plan.ok()) Die(plan.status().message());
    for (const Part::Question& question : part.questions) {
      const MeasuredPlace& scene = grid.scenes[question.scene];
      if (scene.place.nodes == 1) continue;  // takes no part
      const MeasuredSize& context = scene.contexts[question.context];
      Figures& figures = (*found)[Where(part.known, scene.place)];
      Config chosen;
      if (std::optional<Prediction> prediction = transfer.At(scene.place, context.bytes)) {
        CountIntervals(*prediction, context, &figures);
        const ModelChoice choice = Choose(*prediction, {});
        if (!choice.leave_default && choice.best.has_value()) chosen = choice.best->config;
      }
      const policy::DecisionTable table(plan.value().policy,
                                        {.shape = {scene.place.nodes, scene.place.ranks}});
      const auto* const entry = table.Find({scene.place.collective, context.bytes, 1, 0});
      const Config planned = entry == nullptr ? Config() : entry->config();
      Record(scene.place, context, {}, &figures.library);
      Record(scene.place, context, chosen, &figures.model);
      Record(scene.place, context, planned, &figures.plan);
      figures.changed += chosen.IsDefault() ? 0 : 1;
      figures.plan_changed += planned.IsDefault() ? 0 : 1;
      figures.harmful += Harmful(context, chosen);
      figures.plan_harmful += Harmful(context, planned);
    }
  }
}

void AddLines(const std::string& name, bool held_out, const std::map<std::string, Figures>& found,
              report::Table* table) {
  for (const auto& [where, figures] : found) {
    const size_t all = figures.library.contexts;
    table->Add({name, SplitName(held_out), where, std::to_string(all),
                Format("{:.3f}", figures.library.Mean()), Format("{:.3f}", figures.model.Mean()),
                PercentOf(figures.changed, all), PercentOf(figures.harmful, all),
                Format("{:.3f}", figures.model.worst_default),
                Format("{:.3f}", figures.plan.Mean()), PercentOf(figures.plan_changed, all),
                PercentOf(figures.plan_harmful, all), PercentOf(figures.gains, figures.cells),
                PercentOf(figures.times, figures.cells)});
  }
}

}  // namespace

void PrintTransfer(const std::vector<NamedGrid>& grids) {
  using Align = report::Table::Align;
  report::Table table({"measurements", "split", "left out", "choices", "default", "model",
                       "changed", "harmful", "worst/default", "plan", "changed", "harmful",
                       "gain holds", "time holds"});
  std::vector<Align> aligns(14, Align::kRight);
  aligns[0] = aligns[1] = aligns[2] = Align::kLeft;
  table.SetAlign(aligns);
  for (const NamedGrid& part : grids) {
    std::map<std::string, Figures> found;
    CheckGrid(part.grid, &found);
    AddLines(part.name, part.held_out, found, &table);
  }
  for (const bool held_out : {false, true}) {
    for (const GridShape shape : {GridShape::kCrossing, GridShape::kRough, GridShape::kNull}) {
      for (const double carried : {0.03, 0.1, -1.0}) {
        std::map<std::string, Figures> found;
        for (uint64_t i = 0; i < kMadeGrids; ++i) {
          const uint64_t seed = (held_out ? kHeldOutSeed : kDevelopmentSeed) + i;
          const Result<Grid> grid = MakeGrid(
              Make({.shape = shape, .seed = seed, .nodes = {1, 2, 4, 8, 16}, .carried = carried}),
              {});
          if (!grid.ok()) Die(grid.status().message());
          CheckGrid(grid.value(), &found);
        }
        AddLines(Format("made up: {}, {}", ShapeName(shape),
                        carried < 0 ? std::string("independent")
                                    : Format("{:.0f} % a doubling", 100 * carried)),
                 held_out, found, &table);
      }
    }
  }
  std::printf("%s\n", table.Text().c_str());
}

}  // namespace diapason::model
