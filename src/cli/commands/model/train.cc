#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/model/model_data.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/json_text.h"
#include "cli/framework/read_by.h"
#include "model/evaluate.h"
#include "model/model_file.h"
#include "model/split_check.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using nlohmann::ordered_json;

struct Train {
  ModelData data;
  std::string output;
  std::string test_split = "0.2";
  std::string objective = "time";
  int trees = 0;  // 0: default of the objective
  int depth = 0;  // 0: as the objective has it
  double rate = 0.1;
  bool json = false;
  model::FitOptions fit;
};

struct Band {
  uint64_t below;
  const char* name;
};
constexpr Band kBands[] = {{uint64_t{64} << 10, "below 64KiB"},
                           {uint64_t{1} << 20, "64KiB to 1MiB"},
                           {uint64_t{32} << 20, "1MiB to 32MiB"},
                           {UINT64_MAX, "32MiB and more"}};

size_t BandOf(uint64_t bytes) {
  size_t band = 0;
  while (bytes >= kBands[band].below && band + 1 < std::size(kBands)) ++band;
  return band;
}

std::vector<std::string> Cells(const std::string& collective, const std::string& sizes,
                               const model::ChoiceScore& tally) {
  const bool known = tally.with_default > 0;
  return {collective,
          sizes,
          std::to_string(tally.contexts),
          Format("{:.3f}", tally.Mean()),
          Format("{:.3f}", tally.worst),
          known ? Format("{:.3f}", tally.MeanAgainstDefault()) : "-",
          known ? Format("{:.3f}", tally.worst_default) : "-"};
}

std::string DecisionTable(const model::Score& score) {
  using Align = report::Table::Align;
  report::Table table(
      {"collective", "sizes", "choices", "of the best", "worst", "of the default", "worst"});
  table.SetAlign({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
                  Align::kRight, Align::kRight});
  std::map<std::pair<Collective, size_t>, model::ChoiceScore> bands;
  for (const model::Score::Each& one : score.each) {
    bands[{one.place.collective, BandOf(one.bytes)}].Add(one.tally);
  }
  for (const auto& [key, tally] : bands) {
    table.Add(Cells(std::string(CollectiveName(key.first)), kBands[key.second].name, tally));
  }
  table.Add(Cells("all", "", score.all));
  return table.Text();
}

// The quality of its choices at sizes it was not trained on, also used for the model's figures.
Result<model::Score> CheckDecisions(const model::Grid& grid, const model::FitOptions& fit,
                                    model::ModelInfo* info) {
  model::EvaluateOptions options;
  options.fit = fit;
  ASSIGN_OR_RETURN(model::Evaluation evaluation, model::Evaluate(grid, options));
  const model::ChooserKind wanted = fit.objective == model::Objective::kTime
                                        ? model::ChooserKind::kOurs
                                        : model::ChooserKind::kOriginal;
  for (model::Score& score : evaluation.scores) {
    if (score.chooser != wanted) continue;
    info->figures.emplace_back("of-the-best", Format("{:.4f}", score.all.Mean()));
    info->figures.emplace_back("of-the-best-worst", Format("{:.4f}", score.all.worst));
    if (score.all.with_default > 0) {
      info->figures.emplace_back("of-the-default",
                                 Format("{:.4f}", score.all.MeanAgainstDefault()));
      info->figures.emplace_back("of-the-default-worst", Format("{:.4f}", score.all.worst_default));
    }
    return std::move(score);
  }
  return Internal("the evaluation has no result for this model");
}

void PrintCheck(const model::SplitCheck& split, const Result<model::Score>& score) {
  PrintOut("Training on {} samples, testing on {} samples ({} and {} configurations at a size)\n",
           split.trained_samples, split.tested_samples, split.trained_cells, split.tested_cells);
  if (split.tested_cells > 0) {
    PrintOut("Model R2 score: {:.3f}\nModel MAE: {:.2f} GB/s\n", split.r2, split.mae);
  }
  if (!score.ok()) {
    PrintOut("\nThe model's choices were not checked: {}\n", score.status().message());
  } else {
    PrintOut(
        "\nChoices at sizes not used for training (every third, three times), as a fraction of the "
        "speed\nof the best configuration and of the default:\n\n{}",
        DecisionTable(score.value()));
  }
  PrintOut("\n");
}

void PrintTrainJson(const model::ModelInfo& info, const std::string& output) {
  ordered_json figures = ordered_json::object();
  for (auto [name, value] : info.figures) {
    std::replace(name.begin(), name.end(), '-', '_');
    figures[name] = std::strtod(value.c_str(), nullptr);
  }
  const ordered_json json = {{"output", output},
                             {"samples", info.samples},
                             {"cells", info.cells},
                             {"simulated", info.simulated},
                             {"figures", std::move(figures)}};
  PrintOut("{}\n", JsonText(json));
}

// A table of the best configuration of every size, as rccl-sweep's optimized_metrics.csv.
bool WinnersOnly(const model::Grid& grid) {
  size_t sizes = 0;
  for (const model::MeasuredPlace& scene : grid.scenes) {
    for (const model::MeasuredSize& context : scene.contexts) {
      const size_t others = context.cells.size() - (context.library_default.has_value() ? 1 : 0);
      if (others > 1) return false;
      sizes += others;
    }
  }
  return sizes > 1;
}

Result<int> RunTrain(const Train& asked) {
  ASSIGN_OR_RETURN(const double share, ParseShare(asked.test_split, "share for --test-split"));
  model::FitOptions fit = asked.fit;
  ASSIGN_OR_RETURN(const model::Objective objective, model::ParseObjective(asked.objective));
  fit.objective = objective;
  for (model::TreeOptions* const trees : {&fit.trees, &fit.original}) {
    if (asked.trees > 0) trees->trees = asked.trees;
    if (asked.depth > 0) trees->depth = asked.depth;
    trees->rate = asked.rate;
  }
  ASSIGN_OR_RETURN(const model::Grid grid, ReadGrid(asked.data));
  if (WinnersOnly(grid)) {
    Warn(
        "no size has more than one configuration, as in a table of winners: the model cannot know "
        "what the others take, and its predictions for them are guesses");
  }
  ASSIGN_OR_RETURN(model::Predictor predictor, model::Predictor::Fit(grid, fit));
  model::Model made;
  made.predictor = std::move(predictor);
  model::ModelInfo& info = made.info;
  info.simulated = grid.simulated;
  info.machine = grid.machine;
  info.fingerprint = grid.Fingerprint();
  info.samples = grid.samples;
  info.cells = grid.CellCount();
  info.seed = fit.seed;
  if (share > 0) {
    ASSIGN_OR_RETURN(const model::SplitCheck check, model::CheckSplit(grid, share, fit));
    if (check.tested_cells > 0) {
      info.figures.emplace_back("r2", Format("{:.4f}", check.r2));
      info.figures.emplace_back("mae", Format("{:.3f}", check.mae));
    }
    const Result<model::Score> score = CheckDecisions(grid, fit, &info);
    if (!asked.json) PrintCheck(check, score);
  }
  RETURN_IF_ERROR(model::ModelFile::Save(made, asked.output));
  if (asked.json) {
    PrintTrainJson(info, asked.output);
    return kExitFine;
  }
  PrintOut("Saved model to {} (trained on all {} samples{})\n", asked.output, info.samples,
           info.simulated ? ", simulated" : "");
  return kExitFine;
}

}  // namespace

void AddTrain(CommandLine* parent, CommandAction* run) {
  auto asked = std::make_shared<Train>();
  CommandLine* command =
      parent->AddCommand("train", "Train a model that predicts the time of every configuration");
  command->Describe(
      "Writes the model file that `predict` and `plan` use. A first fit is tested on a part of the "
      "measurements; the final model is trained on all of them.");
  AddModelData(command, &asked->data, true);
  command->AddOutput(asked->output, "Model file to write")->Required();
  command
      ->AddOption("--test-split", asked->test_split,
                  "Share of the measurements that a first fit is tested on; 0 disables the test")
      ->TypeName("SHARE")
      ->Check(ShareOf("share"))
      ->Default("0.2");
  command
      ->AddOption("--objective", asked->objective,
                  "Training objective. time: relative time on a log scale; busbw: squared error on "
                  "bus bandwidth, for comparison")
      ->TypeName("WORD")
      ->Words({"time", "busbw"})
      ->Check(ReadBy(model::ParseObjective))
      ->Default("time");
  command->AddOption("--trees", asked->trees, "Number of boosted trees of each ensemble member")
      ->Check(Range(1, 5000))
      ->Default("100");
  command->AddOption("--depth", asked->depth, "Maximum depth of the trees")
      ->Check(Range(1, 12))
      ->Default("6; 3 with --objective busbw");
  command->AddOption("--rate", asked->rate, "Learning rate of the boosted trees")
      ->Check(Range(0.001, 1.0))
      ->ShowDefault();
  command
      ->AddOption("--members", asked->fit.members,
                  "Number of ensemble members, each fitted without a different part of the "
                  "configurations; their disagreement is the uncertainty")
      ->Check(Range(1, 32))
      ->ShowDefault();
  command->AddOption("--seed", asked->fit.seed, "Seed for the random number generator")
      ->ShowDefault();
  command->AddJson(asked->json);
  command->AddFormat();
  command->Example("diapason train --data diapason.db -o my.model",
                   "Train on the store of a sweep");
  command->SeeAlso({"predict", "plan", "evaluate", "sweep"});
  command->Callback([asked, run] { *run = [asked] { return RunTrain(*asked); }; });
}

}  // namespace diapason::cli
