#include "model/plan.h"

#include <cstdio>
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
#include "domain/decision.h"
#include "model/model_file.h"
#include "policy/check.h"
#include "policy/openmpi_rules.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using nlohmann::ordered_json;

struct PlanAsked {
  ModelData data;
  std::string model;
  std::string output;
  std::string format = "csv";
  std::string tolerance = "1%";
  std::string workload;
  std::string origin;
  bool overlap = false;
  bool measured_only = false;
  bool quiet = false;
  bool json = false;
  size_t arms = 0;
  ChoiceFlags flags;
};

std::string Summary(const model::PlannedPolicy& plan) {
  using Align = report::Table::Align;
  report::Table table({"collective", "nodes", "ranks", "from", "to", "configuration", "gain",
                       "least", "known from"});
  table.SetAlign({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                  Align::kLeft, Align::kRight, Align::kLeft, Align::kLeft});
  // The last size of a range, or the first size after it if that is the rounder number.
  const auto last = [](uint64_t bytes) {
    const std::string behind = FormatBytes(bytes + 1);
    return behind.ends_with("iB") ? "<" + behind : FormatBytes(bytes);
  };
  struct Line {
    model::CallPlace place;
    uint64_t from;
    std::vector<std::string> cells;
  };
  std::vector<Line> lines;
  for (const model::PlannedRow& row : plan.rows) {
    const model::CallPlace place{row.rule.collective, static_cast<int>(row.rule.nodes),
                                 static_cast<int>(row.rule.ranks)};
    lines.push_back(
        {place,
         row.rule.min_bytes,
         {std::string(CollectiveName(place.collective)), std::to_string(place.nodes),
          std::to_string(place.ranks), FormatBytes(row.rule.min_bytes), last(row.rule.max_bytes),
          ConfigText(plan.policy.library, place.collective, row.rule.config),
          Format("{:.2f} x", row.gain),
          Format("{:.2f} x [{:.2f}, {:.2f}]", row.least.expected, row.least.low, row.least.high),
          row.KnownFrom()}});
  }
  for (const model::LeftAlone& left : plan.left) {
    lines.push_back(
        {left.place,
         left.first,
         {std::string(CollectiveName(left.place.collective)), std::to_string(left.place.nodes),
          std::to_string(left.place.ranks), FormatBytes(left.first), last(left.last),
          "library default", "-", "-", left.why}});
  }
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return std::tie(a.place, a.from) < std::tie(b.place, b.from);
  });
  for (Line& line : lines) table.Add(std::move(line.cells));
  return table.Text();
}

ordered_json PlaceJson(const model::CallPlace& place, uint64_t first, uint64_t last) {
  return {{"collective", std::string(CollectiveName(place.collective))},
          {"nodes", place.nodes},
          {"ranks", place.ranks},
          {"min_bytes", first},
          {"max_bytes", last}};
}

// `text` is the policy; the document contains it only if it is not written to a file.
ordered_json PlanJson(const model::PlannedPolicy& plan, const PlanAsked& asked,
                      const std::string& text) {
  const Library library = plan.policy.library;
  ordered_json json = {{"library", std::string(LibraryName(library))}, {"format", asked.format}};
  json[asked.output.empty() ? "policy" : "output"] = asked.output.empty() ? text : asked.output;
  json["rows"] = ordered_json::array();
  for (const model::PlannedRow& row : plan.rows) {
    const policy::Rule& rule = row.rule;
    ordered_json one =
        PlaceJson({rule.collective, static_cast<int>(rule.nodes), static_cast<int>(rule.ranks)},
                  rule.min_bytes, rule.max_bytes);
    one["configuration"] = ConfigText(library, rule.collective, rule.config);
    one["gain"] = Short(row.gain);
    one["least_gain"] = {{"expected", Short(row.least.expected)},
                         {"low", Short(row.least.low)},
                         {"high", Short(row.least.high)}};
    one["sizes"] = row.sizes;
    one["samples"] = row.samples;
    one["known_from"] = model::BasisName(row.basis);
    if (row.between.has_value()) {
      one["between_sizes"] = {{"expected", Short(row.between->expected)},
                              {"low", Short(row.between->low)},
                              {"high", Short(row.between->high)}};
    }
    json["rows"].push_back(std::move(one));
  }
  json["left_alone"] = ordered_json::array();
  for (const model::LeftAlone& left : plan.left) {
    ordered_json one = PlaceJson(left.place, left.first, left.last);
    one["why"] = left.why;
    json["left_alone"].push_back(std::move(one));
  }
  return json;
}

Result<int> RunPlan(const PlanAsked& asked) {
  model::PlanOptions options;
  options.measured_only = asked.measured_only;
  options.arms = asked.arms;
  RETURN_IF_ERROR(ReadChoiceFlags(asked.flags, &options.choice));
  ASSIGN_OR_RETURN(const double tolerance, ParseShare(asked.tolerance, "tolerance"));
  options.choice.tolerance = tolerance;
  if (asked.overlap && !asked.model.empty()) {
    return Invalid(
        "--overlap plans from iteration times, which models do not contain: use --data "
        "without --model");
  }
  std::optional<model::Model> model;
  if (!asked.model.empty()) {
    ASSIGN_OR_RETURN(model, model::ModelFile::Load(asked.model));
    if (model->info.simulated) Warn("the model was trained on simulated data");
  }
  std::optional<model::Grid> grid;
  if (!asked.data.files.empty()) {
    model::GridOptions grid_options;
    grid_options.workload = asked.workload;
    if (asked.overlap) grid_options.kind = dataset::Point::Kind::kIteration;
    ASSIGN_OR_RETURN(grid, ReadGrid(asked.data, grid_options));
  }
  options.origin = asked.origin;
  if (options.origin.empty()) {
    const bool simulated =
        (grid.has_value() && grid->simulated) || (model.has_value() && model->info.simulated);
    options.origin = std::string("diapason plan, ") + (simulated ? "simulated " : "") +
                     (asked.overlap ? "iterations" : "collectives");
  }
  ASSIGN_OR_RETURN(model::PlannedPolicy made,
                   model::MakePlan(grid.has_value() ? &*grid : nullptr,
                                   model.has_value() ? &model->predictor : nullptr, options));
  model::PlannedPolicy& plan = made;
  plan.policy.header.fingerprint = grid.has_value() ? grid->machine : model->info.machine;
  for (const std::string& message : plan.messages) Warn(message);
  for (const policy::Diagnostic& found : policy::CheckRules(plan.policy)) Warn(found.message);

  std::string text = plan.Text();
  if (asked.format == "openmpi-rules") {
    std::vector<std::string> notes;
    ASSIGN_OR_RETURN(const std::string rules, policy::OpenMpiRulesText(plan.policy, &notes));
    for (const std::string& note : notes) Warn(note);
    text = rules;
  }
  if (!asked.output.empty()) {
    RETURN_IF_ERROR(WriteFileAtomically(asked.output, text));
  }
  if (asked.json) {
    PrintOut("{}\n", JsonText(PlanJson(plan, asked, text)));
    return kExitFine;
  }
  if (asked.output.empty()) {
    PrintOut("{}", text);
    if (!asked.quiet) WriteError(Summary(plan));
    return kExitFine;
  }
  if (!asked.quiet) PrintOut("{}\n", Summary(plan));
  PrintOut("{}: {}\n", asked.output, Count(plan.rows.size(), "row"));
  return kExitFine;
}

}  // namespace

void AddPlan(CommandLine* parent, CommandAction* run) {
  auto asked = std::make_shared<PlanAsked>();
  CommandLine* command = parent->AddCommand(
      "plan", "Write a policy from measurements, with rows where the data support a change");
  command->AddOutput(asked->output, "File to write")->Default("standard output");
  command
      ->AddOption("--format", asked->format,
                  "Output format. csv: a policy, which the readers of NVIDIA and RCCL accept too; "
                  "openmpi-rules: a rules file for mpirun")
      ->TypeName("WORD")
      ->Check(OneOf({"csv", "openmpi-rules"}))
      ->Default("csv");
  command->AddOption("--origin", asked->origin, "Origin of the policy, written to its header");
  command->AddQuiet(asked->quiet, "Do not print a summary of the policy");
  command->AddJson(asked->json,
                   "Print JSON: every row with its evidence, and the calls left to the library");
  AddModelData(command, &asked->data, false);
  command
      ->AddOption("--model", asked->model,
                  "Model file, for configurations that were not measured; with --data, "
                  "measurements take precedence")
      ->TypeName("FILE");
  command->Heading("Selection");
  AddChoiceFlags(command, &asked->flags, model::PlanOptions().choice);
  command
      ->AddOption("--tolerance", asked->tolerance,
                  "Configurations within this share of the best count as equal: the one with the "
                  "fewest channels and rows is chosen")
      ->TypeName("SHARE")
      ->Check(ShareOf("tolerance"))
      ->Default("1%");
  command->AddFlag("--measured-only", asked->measured_only,
                   "Consider only configurations that were measured, none that a model predicts");
  command
      ->AddOption("--arms", asked->arms,
                  "Add the N best configurations of every size band as rows that a job with "
                  "DIAPASON_MODE=learn tries; other jobs ignore these rows")
      ->Check(Range(0, 16));
  Option* const overlap =
      command->AddFlag("--overlap", asked->overlap,
                       "Plan from the times of whole iterations, for jobs that overlap compute");
  command->AddOption("--workload", asked->workload, "Use only iterations of this workload")
      ->TypeName("NAME")
      ->Needs(overlap);
  command->Example("diapason plan --data diapason.db -o my.conf", "Plan from the store of a sweep");
  command->Example("diapason plan --data metrics.csv --library rccl --model my.model");
  command->SeeAlso({"sweep", "evaluate", "policy-show", "train"});
  command->Callback([asked, run] {
    if (asked->model.empty() && asked->data.files.empty()) {
      throw UsageError{"", "--data or --model is required"};
    }
    *run = [asked] { return RunPlan(*asked); };
  });
}

}  // namespace diapason::cli
