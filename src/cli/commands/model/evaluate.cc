#include "model/evaluate.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/model/model_data.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/json_text.h"
#include "cli/framework/read_by.h"
#include "policy/parse.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using nlohmann::ordered_json;

struct EvaluateAsked {
  ModelData data;
  std::string leave_out = "sizes";
  std::string policy;
  std::string known = "25%";
  bool json = false;
  bool parts = false;
  bool quiet = false;
  model::EvaluateOptions options;
  ChoiceFlags flags;
};

double WorstPart(const model::Score& score) {
  double worst = 1;
  for (const model::ChoiceScore& part : score.parts) worst = std::min(worst, part.Mean());
  return worst;
}

std::string Share(size_t count, size_t of) {
  return of == 0 ? "-"
                 : Format("{:.0f} %", 100.0 * static_cast<double>(count) / static_cast<double>(of));
}

std::string Text(const model::Evaluation& evaluation, bool parts) {
  using Align = report::Table::Align;
  const bool several = evaluation.parts.size() > 1;
  std::vector<std::string> titles = {"chooser", "of the best", "worst"};
  if (several) titles.emplace_back("worst part");
  for (const char* title : {"of the default", "worst", "improved", "harmed"}) {
    titles.emplace_back(title);
  }
  report::Table table(titles);
  table.SetAlign(std::vector<Align>{Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
                                    Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  for (const model::Score& score : evaluation.scores) {
    const model::ChoiceScore& all = score.all;
    const bool known = all.with_default > 0;
    // A default that was not measured has no speed.
    const bool scored = known || score.chooser != model::ChooserKind::kDefault;
    std::vector<std::string> cells = {model::ChooserName(score.chooser),
                                      scored ? Format("{:.3f}", all.Mean()) : "-",
                                      scored ? Format("{:.3f}", all.worst) : "-"};
    if (several) cells.push_back(Format("{:.3f}", WorstPart(score)));
    cells.push_back(known ? Format("{:.3f}", all.MeanAgainstDefault()) : "-");
    cells.push_back(known ? Format("{:.3f}", all.worst_default) : "-");
    cells.push_back(Share(all.improved, all.with_default));
    cells.push_back(Share(all.harmed, all.with_default));
    table.Add(cells);
  }
  std::string text = table.Text();
  if (!parts || !several) return text;
  std::vector<std::string> heads = {"part"};
  for (const model::Score& score : evaluation.scores) {
    heads.emplace_back(model::ChooserName(score.chooser));
  }
  report::Table each(heads);
  for (size_t i = 0; i < evaluation.parts.size(); ++i) {
    std::vector<std::string> cells = {evaluation.parts[i]};
    for (const model::Score& score : evaluation.scores) {
      cells.push_back(Format("{:.3f} / {:.3f}", score.parts[i].Mean(), score.parts[i].worst));
    }
    each.Add(cells);
  }
  return text + "\nSpeed as a fraction of the best by part, geometric mean / worst:\n\n" +
         each.Text();
}

ordered_json TallyJson(const model::ChoiceScore& tally) {
  ordered_json json = {{"contexts", tally.contexts},
                       {"of_best", Short(tally.Mean())},
                       {"worst", Short(tally.worst)},
                       {"worst_at", tally.worst_at}};
  if (tally.with_default > 0) {
    json["of_default"] = Short(tally.MeanAgainstDefault());
    json["worst_of_default"] = Short(tally.worst_default);
    json["worst_of_default_at"] = tally.worst_default_at;
    json["improved"] = tally.improved;
    json["harmed"] = tally.harmed;
  }
  json["unanswered"] = tally.unanswered;
  return json;
}

ordered_json Json(const model::Evaluation& evaluation) {
  ordered_json list = ordered_json::array();
  for (const model::Score& score : evaluation.scores) {
    ordered_json one = {{"chooser", model::ChooserName(score.chooser)}};
    one.update(TallyJson(score.all));
    if (evaluation.parts.size() > 1) {
      one["worst_part"] = Short(WorstPart(score));
      one["parts"] = ordered_json::array();
      for (size_t i = 0; i < evaluation.parts.size(); ++i) {
        ordered_json part = {{"part", evaluation.parts[i]}};
        part.update(TallyJson(score.parts[i]));
        one["parts"].push_back(part);
      }
    }
    list.push_back(one);
  }
  return list;
}

Result<model::Evaluation> Judge(const model::Grid& grid, const EvaluateAsked& asked,
                                const model::EvaluateOptions& options) {
  if (asked.policy.empty()) return model::Evaluate(grid, options);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(asked.policy, policy::kMostBytes));
  policy::ParseOptions parse;
  parse.library = grid.library;
  ASSIGN_OR_RETURN(const policy::Policy rules, policy::ParseStrictly(text, asked.policy, parse));
  size_t unknown = 0;
  Result<model::Evaluation> evaluation = model::EvaluatePolicy(grid, rules, &unknown);
  if (evaluation.ok() && unknown > 0) {
    Warn(Count(unknown, "size") +
         " where the policy selects a configuration that was not measured: counted as the default");
  }
  return evaluation;
}

Result<int> RunEvaluate(const EvaluateAsked& asked) {
  model::EvaluateOptions options = asked.options;
  ASSIGN_OR_RETURN(const model::LeaveOut leave_out, model::ParseLeaveOut(asked.leave_out));
  options.leave_out = leave_out;
  ASSIGN_OR_RETURN(const double known, ParseShare(asked.known, "share for --known"));
  options.known = known;
  RETURN_IF_ERROR(ReadChoiceFlags(asked.flags, &options.choice));
  ASSIGN_OR_RETURN(const model::Grid grid, ReadGrid(asked.data));
  const bool show = !asked.quiet && isatty(STDERR_FILENO) != 0;
  if (show) {
    options.progress = [](size_t part, size_t of) {
      DrawLine(Format("part {} of {}", part + 1, of));
    };
  }
  const Result<model::Evaluation> evaluation = Judge(grid, asked, options);
  EraseLine();
  if (!evaluation.ok()) return evaluation.status();
  const model::ChoiceScore& first = evaluation.value().scores.front().all;
  if (asked.json) {
    const ordered_json json = {{"leave_out", asked.policy.empty() ? asked.leave_out : "nothing"},
                               {"draws", evaluation.value().parts.size()},
                               {"library", std::string(LibraryName(grid.library))},
                               {"simulated", grid.simulated},
                               {"choosers", Json(evaluation.value())}};
    PrintOut("{}\n", JsonText(json));
    return kExitFine;
  }
  if (asked.policy.empty()) {
    PrintOut(
        "{} choices in {}; speed as a fraction of that of the fastest configuration and of the "
        "default\n\n",
        first.contexts, Count(evaluation.value().parts.size(), "part"));
  } else {
    PrintOut(
        "{} choices, nothing hidden; speed as a fraction of that of the fastest configuration and "
        "of the default\n\n",
        first.contexts);
  }
  PrintOut("{}", Text(evaluation.value(), asked.parts));
  for (const model::Score& score : evaluation.value().scores) {
    if (score.all.unanswered == 0) continue;
    PrintOut("\n{}: no basis for a choice in {} of {}; the default was taken\n",
             model::ChooserName(score.chooser), score.all.unanswered, score.all.contexts);
  }
  for (const model::Score& score : evaluation.value().scores) {
    if (score.chooser != model::ChooserKind::kOurs && score.chooser != model::ChooserKind::kPolicy)
      continue;
    if (score.all.worst < 1) {
      PrintOut("\n{}: largest loss against the best: {}", model::ChooserName(score.chooser),
               score.all.worst_at);
    }
    if (score.all.with_default > 0 && score.all.worst_default < 1) {
      PrintOut("\n{}: largest loss against the default: {}", model::ChooserName(score.chooser),
               score.all.worst_default_at);
    }
    PrintOut("\n");
  }
  return kExitFine;
}

}  // namespace

void AddEvaluate(CommandLine* parent, CommandAction* run) {
  auto asked = std::make_shared<EvaluateAsked>();
  CommandLine* command = parent->AddCommand(
      "evaluate", "Compare the choices of the default, of a policy and of models with the best");
  command->Describe(
      "Hides parts of the measurements, lets each method choose from the rest, and compares the "
      "choices with the hidden measurements.");
  AddModelData(command, &asked->data, true);
  Option* const leave_out =
      command
          ->AddOption(
              "--leave-out", asked->leave_out,
              "What to hide. sizes: every third size; nodes: one node count; configs: all but "
              "--known of the configurations; cells: the same, drawn separately for every size")
          ->TypeName("WORD")
          ->Words({"sizes", "nodes", "configs", "cells"})
          ->Check(ReadBy(model::ParseLeaveOut))
          ->Default("sizes");
  command
      ->AddOption("--draws", asked->options.draws, "Number of random draws for configs and cells")
      ->Check(Range(1, 1000))
      ->ShowDefault();
  command->AddOption("--known", asked->known, "Share of configs and cells that is not hidden")
      ->TypeName("SHARE")
      ->Check(ShareOf("share"))
      ->Default("25%");
  command
      ->AddOption("--policy", asked->policy,
                  "Evaluate this policy instead of models; nothing is hidden")
      ->TypeName("FILE")
      ->Excludes(leave_out);
  AddChoiceFlags(command, &asked->flags, {});
  command->AddOption("--seed", asked->options.fit.seed, "Seed for the random number generator")
      ->ShowDefault();
  command->Heading("Output");
  command->AddFlag("--parts", asked->parts, "Also show each hidden part separately");
  command->AddJson(asked->json);
  command->AddFormat();
  command->AddQuiet(asked->quiet);
  command->Example("diapason evaluate --data diapason.db --policy my.conf",
                   "Compare a policy with the best measured configurations");
  command->Example("diapason evaluate --data diapason.db --leave-out configs --known 25%");
  command->SeeAlso({"plan", "train", "bench"});
  command->Callback([asked, run] { *run = [asked] { return RunEvaluate(*asked); }; });
}

}  // namespace diapason::cli
