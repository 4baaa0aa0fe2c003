// How often a model's 90 % intervals hold what was measured, by the basis of the estimate:
//
//   bench_coverage [FILE:LIBRARY]...
//
// Parts of the tables are hidden, a model is fitted to the rest, and its estimates of the hidden
// cells are compared with the measurements there: times with `doubt` as `predict --json` prints it,
// gains with their intervals. "Near the best": configurations that come within 30 % of the fastest
// of their size, which are those that a choice is made among. Development and held-out parts
// (grid_tables.h) are printed apart.
#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include "base/text.h"
#include "grid_tables.h"
#include "model/choose.h"
#include "model/evaluate.h"
#include "model/splits.h"
#include "report/table.h"
#include "transfer_check.h"

namespace diapason::model {
namespace {

constexpr double kNinety = 1.6449;
constexpr int kDraws = 4;
constexpr double kKnown[] = {0.25, 0.5};
constexpr double kNear = 0.3;

struct Held {
  size_t cells = 0;
  size_t times = 0;
  size_t gains = 0;
  size_t gain_cells = 0;
  double width = 0;  // sum of the gains' standard deviations
};

struct Counts {
  Held all;
  Held near;
  // Of the configuration that is chosen (or would be, without the default): expected and measured
  // gains, as logarithms.
  size_t chosen = 0;
  double promised = 0;
  double found = 0;
  size_t unclaimed = 0;  // cells without an interval
};

using Table = std::map<std::pair<std::string, std::string>, Counts>;  // by hidden part and basis

void Count(const Prediction& prediction, const PredictedConfig& one, const MeasuredConfig& cell,
           const MeasuredConfig* library_default, Held* held) {
  ++held->cells;
  const double doubt = Together(Together(one.estimate.doubt, prediction.time_bend), cell.noise);
  held->times += std::fabs(one.estimate.log_seconds - cell.log_seconds) <= kNinety * doubt ? 1 : 0;
  const auto gain = GainOf(prediction, one);
  if (!gain.has_value() || library_default == nullptr) return;
  ++held->gain_cells;
  // The hidden measurement has noise of its own.
  const double half = std::log(gain->high / gain->low) / 2;
  const double noise = kNinety * Together(cell.noise, library_default->noise);
  const double truth = library_default->log_seconds - cell.log_seconds;
  const double centre = std::log(gain->high * gain->low) / 2;
  held->gains += std::fabs(truth - centre) <= Together(half, noise) ? 1 : 0;
  held->width += half / kNinety;
}

void Check(const Predictor& predictor, const MeasuredPlace& scene, const MeasuredSize& context,
           const MeasuredPlace* known, const std::string& hidden, Table* table) {
  const Prediction prediction = predictor.Look({scene.place, context.bytes, true, {}});
  const MeasuredConfig* const library_default =
      context.library_default.has_value() ? &context.cells[*context.library_default] : nullptr;
  double best = INFINITY;
  for (const MeasuredConfig& cell : context.cells) best = std::min(best, cell.log_seconds);
  Prediction scored = prediction;
  scored.candidates.clear();
  for (const PredictedConfig& one : prediction.candidates) {
    const MeasuredConfig* const cell = context.Find(one.config);
    if (cell == nullptr) continue;
    scored.candidates.push_back(one);
    if (one.basis == Basis::kMeasured) continue;
    Counts& counts = (*table)[{hidden, BasisName(one.basis)}];
    const double doubt = Together(one.estimate.doubt, prediction.time_bend);
    if (!std::isfinite(prediction.shared) || !std::isfinite(doubt)) {
      ++counts.unclaimed;
      continue;
    }
    Count(prediction, one, *cell, library_default, &counts.all);
    if (cell->log_seconds < best + kNear)
      Count(prediction, one, *cell, library_default, &counts.near);
  }
  (void)known;
  const ModelChoice choice = Choose(scored, {});
  if (choice.leave_default || !choice.best.has_value() || !choice.gain.has_value() ||
      library_default == nullptr || choice.best->basis == Basis::kMeasured) {
    return;
  }
  Counts& counts = (*table)[{hidden, BasisName(choice.best->basis)}];
  ++counts.chosen;
  counts.promised += std::log(choice.gain->expected);
  counts.found += library_default->log_seconds - context.Find(choice.best->config)->log_seconds;
}

void CheckParts(const Grid& grid, const std::vector<Part>& parts, const std::string& hidden,
                Table* table) {
  for (const Part& part : parts) {
    if (part.known.scenes.empty()) continue;
    const Result<Predictor> predictor = Predictor::Fit(part.known, {});
    if (!predictor.ok()) Die(predictor.status().message());
    for (const Part::Question& question : part.questions) {
      const MeasuredPlace& scene = grid.scenes[question.scene];
      Check(predictor.value(), scene, scene.contexts[question.context],
            part.known.Find(scene.place), hidden, table);
    }
  }
}

// Every second size between the smallest and the largest, twice.
std::vector<Part> WithoutEverySecond(const Grid& grid) {
  std::vector<Part> parts;
  for (const size_t parity : {0, 1}) {
    Part part{Format("sizes, parity {}", parity), grid, {}};
    for (size_t s = 0; s < grid.scenes.size(); ++s) {
      std::vector<MeasuredSize>& contexts = part.known.scenes[s].contexts;
      for (size_t c = contexts.size() - 1; c-- > 1;) {
        if (c % 2 != parity) continue;
        part.questions.push_back({s, c});
        contexts.erase(contexts.begin() + static_cast<ptrdiff_t>(c));
      }
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

// The largest sizes, and the smallest: the size this many steps outside is asked.
std::vector<Part> WithoutEnds(const Grid& grid, size_t steps) {
  std::vector<Part> parts;
  for (const bool top : {false, true}) {
    Part part{top ? "largest" : "smallest", grid, {}};
    for (size_t s = 0; s < grid.scenes.size(); ++s) {
      std::vector<MeasuredSize>& contexts = part.known.scenes[s].contexts;
      const size_t count = contexts.size();
      if (count < steps + 3) continue;
      part.questions.push_back({s, top ? count - 1 : 0});
      const auto first = contexts.begin() + (top ? static_cast<ptrdiff_t>(count - steps) : 0);
      contexts.erase(first, first + static_cast<ptrdiff_t>(steps));
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

void CheckGrid(const Grid& grid, Table* table) {
  CheckParts(grid, WithoutEverySecond(grid), "every second size", table);
  for (const double known : kKnown) {
    for (const bool each : {false, true}) {
      CheckParts(grid, WithoutConfigs(grid, kDraws, known, each),
                 Format("{:.0f} % of the {}", 100 * (1 - known), each ? "cells" : "configs"),
                 table);
    }
  }
  for (const size_t steps : {1, 2, 3}) {
    CheckParts(grid, WithoutEnds(grid, steps), Format("the last {} sizes", steps), table);
  }
  CheckParts(grid, WithoutNodes(grid), "a node count", table);
}

void Print(const std::string& title, const Table& found) {
  using Align = report::Table::Align;
  report::Table table({"hidden", "known from", "cells", "time holds", "gain holds", "+-",
                       "near the best", "time holds", "gain holds", "no claim", "chosen",
                       "promised", "found"});
  table.SetAlign({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
                  Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                  Align::kRight, Align::kRight, Align::kRight});
  const auto gain = [](double sum, size_t count) {
    return count == 0 ? "-" : Format("{:.3f}", std::exp(sum / static_cast<double>(count)));
  };
  for (const auto& [key, counts] : found) {
    const double wide = counts.all.gain_cells == 0
                            ? 0
                            : counts.all.width / static_cast<double>(counts.all.gain_cells);
    table.Add({key.first, key.second, std::to_string(counts.all.cells),
               PercentOf(counts.all.times, counts.all.cells),
               PercentOf(counts.all.gains, counts.all.gain_cells), Format("{:.1f} %", 100 * wide),
               std::to_string(counts.near.cells), PercentOf(counts.near.times, counts.near.cells),
               PercentOf(counts.near.gains, counts.near.gain_cells),
               std::to_string(counts.unclaimed), std::to_string(counts.chosen),
               gain(counts.promised, counts.chosen), gain(counts.found, counts.chosen)});
  }
  std::printf("%s\n\n%s\n", title.c_str(), table.Text().c_str());
}

// Choices with the same parts hidden.
void PrintChoices(const Grid& grid) {
  using Align = report::Table::Align;
  report::Table table({"hidden", "chooser", "choices", "of the best", "worst", "of the default",
                       "worst", "improved", "harmed"});
  table.SetAlign({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
                  Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  constexpr std::pair<LeaveOut, const char*> kParts[] = {{LeaveOut::kSizes, "sizes"},
                                                         {LeaveOut::kConfigs, "configs"},
                                                         {LeaveOut::kCells, "cells"},
                                                         {LeaveOut::kNodes, "nodes"}};
  for (const auto& [leave_out, name] : kParts) {
    EvaluateOptions options;
    options.leave_out = leave_out;
    options.draws = 2 * kDraws;
    const Result<Evaluation> evaluation = Evaluate(grid, options);
    if (!evaluation.ok()) continue;  // one node count
    for (const Score& score : evaluation.value().scores) {
      if (score.chooser == ChooserKind::kOracle) continue;
      const ChoiceScore& all = score.all;
      table.Add({name, ChooserName(score.chooser), std::to_string(all.contexts),
                 Format("{:.4f}", all.Mean()), Format("{:.3f}", all.worst),
                 Format("{:.4f}", all.MeanAgainstDefault()), Format("{:.3f}", all.worst_default),
                 PercentOf(all.improved, all.contexts), PercentOf(all.harmed, all.contexts)});
    }
  }
  std::printf("%s\n", table.Text().c_str());
}

}  // namespace
}  // namespace diapason::model

int main(int argc, char** argv) {
  using namespace diapason::model;
  std::vector<NamedGrid> grids;
  for (int i = 1; i < argc; ++i) {
    for (NamedGrid& part : ReadTable(argv[i])) grids.push_back(std::move(part));
  }
  for (const NamedGrid& part : grids) {
    Table table;
    CheckGrid(part.grid, &table);
    Print(diapason::Format("{}, {}", part.name, SplitName(part.held_out)), table);
    PrintChoices(part.grid);
  }
  std::printf("Numbers of nodes left out\n\n");
  PrintTransfer(grids);
  return 0;
}
