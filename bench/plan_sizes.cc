// Plans at sizes that were hidden from them, on tables of measurements and on made-up ones:
//
//   bench_plan_sizes [FILE:LIBRARY]...
//
// 1. Every second size of a place is hidden, twice; a plan of the rest is scored by the
// measurements
//    at the hidden sizes, beside the library's own choice and plain interpolation.
// 2. How often the 90 % interval of an interpolated gain holds the measured one.
// 3. Plans of made-up measurements in which nothing is faster than the library's own choice: how
//    many have a row. Days on which everything takes longer.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "base/text.h"
#include "grid_tables.h"
#include "model/evaluate.h"
#include "model/gap.h"
#include "model/plan.h"
#include "plan_grids.h"
#include "policy/table.h"
#include "report/table.h"

namespace diapason::model {
namespace {

constexpr int kNullPlans = 100;
constexpr int kMadeGrids = 10;
constexpr double kHarm = 0.95;

Grid GridOf(const MadeGrid& made) {
  Result<Grid> grid = MakeGrid(Make(made), {});
  if (!grid.ok()) Die(grid.status().message());
  return std::move(grid).value();
}

PlannedPolicy PlanOf(const Grid& grid) {
  Result<PlannedPolicy> plan = MakePlan(&grid, nullptr, {});
  if (!plan.ok()) Die(plan.status().message());
  return std::move(plan).value();
}

struct Figures {
  ChoiceScore library;
  ChoiceScore line;
  ChoiceScore plan;
  size_t harmful = 0;  // choices of the plan below kHarm of the default
  size_t line_harmful = 0;
  size_t intervals = 0;
  size_t held = 0;

  void Add(const Figures& other) {
    library.Add(other.library);
    line.Add(other.line);
    plan.Add(other.plan);
    harmful += other.harmful;
    line_harmful += other.line_harmful;
    intervals += other.intervals;
    held += other.held;
  }
};

size_t Harmful(const MeasuredSize& context, const Config& config) {
  if (!context.library_default.has_value()) return 0;
  const MeasuredConfig* const cell = context.Find(config);
  if (cell == nullptr) return 0;
  return context.cells[*context.library_default].log_seconds - cell->log_seconds < std::log(kHarm)
             ? 1
             : 0;
}

Config LineChoice(const MeasuredPlace& known, const MeasuredSize& context) {
  Config chosen;
  double best = INFINITY;
  for (const MeasuredConfig& cell : context.cells) {
    const std::optional<Estimate> line = Interpolate(known, context.bytes, cell.config);
    if (!line.has_value() || line->log_seconds >= best) continue;
    best = line->log_seconds;
    chosen = cell.config;
  }
  return chosen;
}

// The interval of the gain of what interpolation would choose, against the measurement.
void CheckInterval(const MeasuredPlace& known, const MeasuredSize& context, const Config& config,
                   double unit, Figures* figures) {
  const std::optional<Surrounding> around = Surround(known, context.bytes, config);
  const std::optional<Estimate> own = Interpolate(known, context.bytes, {});
  const std::optional<Estimate> line = Interpolate(known, context.bytes, config);
  const MeasuredConfig* const cell = context.Find(config);
  if (config.IsDefault() || !around.has_value() || !own.has_value() || !line.has_value() ||
      cell == nullptr || !context.library_default.has_value()) {
    return;
  }
  const MeasuredConfig& other = context.cells[*context.library_default];
  const double error = GapError(unit, around->weight, around->doublings);
  // The hidden measurement has noise of its own.
  const double doubt =
      std::sqrt(error * error + own->doubt * own->doubt + line->doubt * line->doubt +
                cell->noise * cell->noise + other.noise * other.noise);
  const double off = own->log_seconds - line->log_seconds - (other.log_seconds - cell->log_seconds);
  ++figures->intervals;
  figures->held += std::fabs(off) <= 1.645 * doubt ? 1 : 0;
}

// Choices by the measurements of `grid` at hidden sizes, scored by the same or, if given, by
// `truth`.
Figures HideSizes(const Grid& grid, const Grid* truth = nullptr) {
  if (truth == nullptr) truth = &grid;
  Figures figures;
  for (const size_t parity : {0, 1}) {
    Grid known = grid;
    for (MeasuredPlace& scene : known.scenes) {
      std::vector<MeasuredSize> kept;
      for (size_t i = 0; i < scene.contexts.size(); ++i) {
        const bool end = i == 0 || i + 1 == scene.contexts.size();
        if (end || i % 2 != parity) kept.push_back(scene.contexts[i]);
      }
      scene.contexts = std::move(kept);
    }
    const PlannedPolicy plan = PlanOf(known);
    for (size_t s = 0; s < grid.scenes.size(); ++s) {
      const MeasuredPlace& scene = grid.scenes[s];
      const double unit = GapUnit(known.scenes[s]);
      const policy::DecisionTable table(plan.policy,
                                        {.shape = {scene.place.nodes, scene.place.ranks}});
      for (size_t i = 1; i + 1 < scene.contexts.size(); ++i) {
        if (i % 2 != parity) continue;
        const MeasuredSize& context = truth->scenes[s].contexts[i];
        const auto* const entry = table.Find({scene.place.collective, context.bytes, 1, 0});
        const Config planned = entry == nullptr ? Config() : entry->config();
        const Config line = LineChoice(known.scenes[s], context);
        Record(scene.place, context, {}, &figures.library);
        Record(scene.place, context, line, &figures.line);
        Record(scene.place, context, planned, &figures.plan);
        figures.harmful += Harmful(context, planned);
        figures.line_harmful += Harmful(context, line);
        CheckInterval(known.scenes[s], context, line, unit, &figures);
      }
    }
  }
  return figures;
}

void AddLine(const std::string& name, bool held_out, const Figures& figures, report::Table* table) {
  const double plan = figures.plan.Mean();
  const double line = figures.line.Mean();
  const double own = figures.library.Mean();
  const bool reached =
      plan >= line - 0.003 && plan >= own &&
      static_cast<double>(figures.harmful) <= 0.05 * static_cast<double>(figures.plan.contexts);
  table->Add({name, SplitName(held_out), std::to_string(figures.plan.contexts),
              Format("{:.3f}", own), Format("{:.3f}", line), Format("{:.3f}", plan),
              Format("{:.3f}", figures.plan.worst_default),
              PercentOf(figures.line_harmful, figures.plan.contexts),
              PercentOf(figures.harmful, figures.plan.contexts),
              PercentOf(figures.held, figures.intervals), reached ? "yes" : "NO"});
}

void AddMade(bool held_out, report::Table* table) {
  for (const GridShape shape :
       {GridShape::kCrossing, GridShape::kTies, GridShape::kDips, GridShape::kRough}) {
    for (const NoiseKind noise : {NoiseKind::kNormal, NoiseKind::kHeavy, NoiseKind::kHiccups}) {
      Figures all;
      for (uint64_t i = 0; i < kMadeGrids; ++i) {
        const uint64_t seed = (held_out ? kHeldOutSeed : kDevelopmentSeed) + i;
        all.Add(HideSizes(GridOf({.shape = shape, .noise = noise, .seed = seed})));
      }
      AddLine(Format("made up: {}, {}", ShapeName(shape), NoiseName(noise)), held_out, all, table);
    }
  }
}

// Few samples in much noise, on one place alone: scored by the truth.
struct WeakGrids {
  GridShape shape;
  NoiseKind noise;
  double spread;
  int repeats;
  double strength;
  bool few;
};
constexpr WeakGrids kWeakGrids[] = {
    {GridShape::kCrossing, NoiseKind::kNormal, 0.15, 2, 0.5, true},
    {GridShape::kCrossing, NoiseKind::kHeavy, 0.07, 2, 0.5, true},
    {GridShape::kCrossing, NoiseKind::kNormal, 0.15, 3, 0.5, true},
    {GridShape::kCrossing, NoiseKind::kNormal, 0.05, 3, 0.5, false},
    {GridShape::kCrossing, NoiseKind::kHiccups, 0.08, 5, 0.5, false},
    {GridShape::kTies, NoiseKind::kNormal, 0.15, 2, 0.5, true},
    {GridShape::kRough, NoiseKind::kNormal, 0.15, 2, 0.8, true},
    {GridShape::kDips, NoiseKind::kNormal, 0.10, 2, 0.5, true},
};
constexpr int kWeakSeeds = 40;
constexpr uint64_t kWeakFirst = 100;  // other seeds than those of AddMade

void AddWeak(bool held_out, report::Table* table) {
  for (const WeakGrids& weak : kWeakGrids) {
    Figures all;
    for (uint64_t i = 0; i < kWeakSeeds; ++i) {
      MadeGrid made{.shape = weak.shape,
                    .noise = weak.noise,
                    .repeats = weak.repeats,
                    .seed = (held_out ? kHeldOutSeed : kDevelopmentSeed) + kWeakFirst + i,
                    .sizes = 14,
                    .nodes = {1},
                    .spread = weak.spread,
                    .strength = weak.strength,
                    .few = weak.few};
      const Grid measured = GridOf(made);
      made.noise = NoiseKind::kNormal;
      made.spread = 1e-6;
      const Grid truth = GridOf(made);
      all.Add(HideSizes(measured, &truth));
    }
    AddLine(Format("weak: {}, {} {:.0f} %, {} samples", ShapeName(weak.shape),
                   NoiseName(weak.noise), 100 * weak.spread, weak.repeats),
            held_out, all, table);
  }
}

void PrintSizes(const std::vector<std::string>& tables) {
  using Align = report::Table::Align;
  report::Table table({"measurements", "split", "choices", "default", "interpolation", "plan",
                       "worst/default", "harmful (interp.)", "harmful (plan)", "90 % holds",
                       "reached"});
  table.SetAlign({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
                  Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  for (const std::string& argument : tables) {
    for (const NamedGrid& part : ReadTable(argument)) {
      for (const MeasuredPlace& scene : part.grid.scenes) {
        Grid one = part.grid;
        one.scenes = {scene};
        const Figures figures = HideSizes(one);
        if (figures.plan.contexts == 0) continue;
        AddLine(PlaceText(scene.place), part.held_out, figures, &table);
      }
      AddLine(part.name, part.held_out, HideSizes(part.grid), &table);
    }
  }
  for (const bool held_out : {false, true}) {
    AddMade(held_out, &table);
    AddWeak(held_out, &table);
  }
  std::printf("Every second size hidden, speed as a fraction of the best (geometric mean):\n\n%s\n",
              table.Text().c_str());
}

void PrintNull() {
  using Align = report::Table::Align;
  report::Table table({"nothing is faster", "spread", "repeats", "plans", "with a row", "reached"});
  table.SetAlign({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  for (const bool weak : {false, true}) {
    for (const NoiseKind noise : {NoiseKind::kNormal, NoiseKind::kHeavy, NoiseKind::kHiccups}) {
      for (const int repeats : {1, 2, 3, 5, 10}) {
        size_t rows = 0;
        for (int seed = 1; seed <= kNullPlans; ++seed) {
          MadeGrid made{.shape = GridShape::kNull,
                        .noise = noise,
                        .repeats = repeats,
                        .seed = static_cast<uint64_t>(seed)};
          if (weak) {
            made.sizes = 14;
            made.spread = 0.15;
            made.few = true;
          }
          rows += PlanOf(GridOf(made)).rows.empty() ? 0 : 1;
        }
        table.Add({NoiseName(noise), weak ? "15 %, few" : "1 %", std::to_string(repeats),
                   std::to_string(kNullPlans), PercentOf(rows, kNullPlans),
                   rows <= kNullPlans / 20 ? "yes" : "NO"});
      }
    }
  }
  std::printf("%s\n", table.Text().c_str());
}

// Rows of two days' measurements beside those of the first day.
void PrintDays() {
  report::Table table({"two days", "rows", "rows of the first day alone", "null plans with a row"});
  for (const double factor : {1.0, 1 / 0.7, 0.7}) {
    for (const bool has : {true, false}) {
      size_t rows = 0;
      size_t alone = 0;
      size_t null = 0;
      for (int seed = 1; seed <= kMadeGrids; ++seed) {
        MadeGrid made{.shape = GridShape::kCrossing, .seed = static_cast<uint64_t>(seed)};
        alone += PlanOf(GridOf(made)).rows.size();
        made.second_day = factor;
        made.second_day_has_default = has;
        rows += PlanOf(GridOf(made)).rows.size();
      }
      for (int seed = 1; seed <= kNullPlans; ++seed) {
        const MadeGrid made{.shape = GridShape::kNull,
                            .seed = static_cast<uint64_t>(seed),
                            .second_day = factor,
                            .second_day_has_default = has};
        null += PlanOf(GridOf(made)).rows.empty() ? 0 : 1;
      }
      table.Add({Format("x {:.2f}{}", factor, has ? "" : ", without the default"),
                 std::to_string(rows), std::to_string(alone), PercentOf(null, kNullPlans)});
    }
  }
  std::printf("%s", table.Text().c_str());
}

}  // namespace
}  // namespace diapason::model

int main(int argc, char** argv) {
  diapason::model::PrintSizes({argv + 1, argv + argc});
  diapason::model::PrintNull();
  diapason::model::PrintDays();
  return 0;
}
