#include <cmath>
#include <cstdio>
#include <cstdlib>
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
#include "cli/framework/words.h"
#include "domain/decision.h"
#include "model/model_file.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using nlohmann::ordered_json;

struct Predict {
  std::string model;
  std::string collective;
  int nodes = 1;
  int ranks = 0;
  std::string size;
  std::string sizes;
  std::string search = "exhaustive";
  // A configuration to predict, instead of searching for the best.
  std::string algorithm;
  std::string protocol;
  int channels = 0;
  bool beyond = false;
  bool json = false;
  ChoiceFlags flags;
};

// One answer with all values that are printed.
struct PredictAnswer {
  uint64_t bytes = 0;
  model::Prediction prediction;
  model::ModelChoice choice;
  std::optional<model::PredictedConfig> asked;  // the configuration that was asked about
};

double BusGigabytes(const PredictAnswer& answer, const model::Estimate& estimate) {
  return model::BusGigabytes(answer.prediction.place, answer.bytes, estimate.log_seconds);
}

// The configuration that will run: the chosen one, or the library's own choice.
std::optional<model::Estimate> Running(const PredictAnswer& answer) {
  if (!answer.choice.leave_default) return answer.choice.best->estimate;
  return answer.prediction.library_default;
}

std::string GainText(const model::ModelChoice::Gain& gain) {
  if (!std::isfinite(gain.high)) return Format("{:.2f} x [?, ?]", gain.expected);
  return Format("{:.2f} x [{:.2f}, {:.2f}]", gain.expected, gain.low, gain.high);
}

std::string Upper(std::string_view name) {
  std::string text(name);
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

struct ConfigWords {
  std::string algorithm = "default";
  std::string protocol = "default";
  std::string channels = "default";
};

ConfigWords WordsOf(Library library, const PredictAnswer& answer) {
  ConfigWords words;
  if (answer.choice.leave_default || !answer.choice.best.has_value()) return words;
  const Config& config = answer.choice.best->config;
  if (config.algorithm != kKeep) {
    words.algorithm =
        Upper(AlgorithmName(library, answer.prediction.place.collective, config.algorithm));
  }
  if (config.protocol != kKeep) words.protocol = Upper(ProtocolName(library, config.protocol));
  if (config.channels > 0) words.channels = std::to_string(config.channels);
  return words;
}

std::string ConfigOf(Library library, const PredictAnswer& answer,
                     const std::optional<model::PredictedConfig>& candidate) {
  if (!candidate.has_value()) return "-";
  return ConfigText(library, answer.prediction.place.collective, candidate->config);
}

void PrintOne(Library library, const Predict& asked, const PredictAnswer& answer) {
  const model::ModelChoice& choice = answer.choice;
  PrintOut("Optimal config for {} ({}, {}, {}):\n", asked.collective,
           Count(static_cast<size_t>(asked.nodes), "node"),
           Count(static_cast<size_t>(asked.ranks), "GPU"), FormatBytes(answer.bytes));
  const ConfigWords words = WordsOf(library, answer);
  PrintOut("  algo: {}\n  proto: {}\n  nchannels: {}\n", words.algorithm, words.protocol,
           words.channels);
  if (const auto running = Running(answer); running.has_value()) {
    PrintOut("  predicted_busbw: {:.1f} GB/s\n", BusGigabytes(answer, *running));
  }
  if (choice.leave_default) {
    PrintOut("  keep the default: {}\n", choice.why);
    if (choice.best.has_value() && choice.gain.has_value()) {
      PrintOut("  best alternative: {}, {} of the default's speed\n",
               ConfigOf(library, answer, choice.best), GainText(*choice.gain));
    }
  } else {
    PrintOut("  gain over the default: {}\n",
             choice.gain.has_value() ? GainText(*choice.gain) : choice.why);
    PrintOut("  known from: {}\n", model::BasisName(choice.best->basis));
    if (choice.runner_up.has_value()) {
      PrintOut("  runner-up: {}, {:.1f} GB/s\n", ConfigOf(library, answer, choice.runner_up),
               BusGigabytes(answer, choice.runner_up->estimate));
    }
  }
  for (const std::string& caveat : answer.prediction.caveats) Warn(caveat);
}

// The prediction for the configuration that was asked about.
std::vector<std::string> AskedCells(const PredictAnswer& answer) {
  const auto gain = model::GainOf(answer.prediction, *answer.asked);
  return {FormatBytes(answer.bytes),
          Format("{:.1f} GB/s", BusGigabytes(answer, answer.asked->estimate)),
          gain.has_value() ? GainText(*gain) : "-", model::BasisName(answer.asked->basis)};
}

void PrintAsked(Library library, const Predict& asked, const std::vector<PredictAnswer>& answers) {
  using Align = report::Table::Align;
  PrintOut("{} ({}, {}), {}:\n", asked.collective, Count(static_cast<size_t>(asked.nodes), "node"),
           Count(static_cast<size_t>(asked.ranks), "GPU"),
           ConfigOf(library, answers.front(), answers.front().asked));
  report::Table table({"size", "predicted_busbw", "gain over default", "known from"});
  table.SetAlign({Align::kRight, Align::kRight, Align::kRight});
  for (const PredictAnswer& answer : answers) table.Add(AskedCells(answer));
  PrintOut("{}", table.Text());
  for (const std::string& caveat : answers.front().prediction.caveats) Warn(caveat);
}

void PrintTable(Library library, const std::vector<PredictAnswer>& answers) {
  using Align = report::Table::Align;
  report::Table table({"size", "algo", "proto", "nchannels", "predicted_busbw", "gain over default",
                       "known from", "runner-up", "why"});
  table.SetAlign(
      {Align::kRight, Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.SetImportance({9, 8, 8, 7, 5, 6, 3, 2, 1});
  for (const PredictAnswer& answer : answers) {
    const ConfigWords words = WordsOf(library, answer);
    const auto running = Running(answer);
    const model::ModelChoice& choice = answer.choice;
    table.Add({FormatBytes(answer.bytes), words.algorithm, words.protocol, words.channels,
               running.has_value() ? Format("{:.1f} GB/s", BusGigabytes(answer, *running)) : "-",
               choice.gain.has_value() ? GainText(*choice.gain) : "-",
               choice.best.has_value() ? model::BasisName(choice.best->basis) : "-",
               ConfigOf(library, answer, choice.leave_default ? choice.best : choice.runner_up),
               choice.leave_default ? "keep the default: " + choice.why : choice.why});
  }
  PrintOut("{}", table.Text());
  std::vector<std::string> said;
  for (const PredictAnswer& answer : answers) {
    for (const std::string& caveat : answer.prediction.caveats) {
      if (std::find(said.begin(), said.end(), caveat) != said.end()) continue;
      said.push_back(caveat);
      Warn(caveat);
    }
  }
}

ordered_json CandidateJson(Library library, const PredictAnswer& answer,
                           const model::PredictedConfig& one) {
  const Collective collective = answer.prediction.place.collective;
  const auto word = [](int value, std::string_view name) {
    return value == kKeep ? ordered_json(nullptr) : ordered_json(std::string(name));
  };
  return {{"algo",
           word(one.config.algorithm, AlgorithmName(library, collective, one.config.algorithm))},
          {"proto", word(one.config.protocol, ProtocolName(library, one.config.protocol))},
          {"nchannels", one.config.channels > 0 ? ordered_json(one.config.channels) : nullptr},
          {"seconds", Short(std::exp(one.estimate.log_seconds))},
          {"doubt", Short(model::Together(one.estimate.doubt, answer.prediction.time_bend))},
          {"busbw", Short(BusGigabytes(answer, one.estimate))},
          {"known_from", model::BasisName(one.basis)}};
}

ordered_json AnswerJson(Library library, const PredictAnswer& answer) {
  const model::ModelChoice& choice = answer.choice;
  ordered_json json = {{"bytes", answer.bytes},
                       {"leave_default", choice.leave_default},
                       {"why", choice.why},
                       {"examined", choice.examined}};
  if (const auto running = Running(answer); running.has_value()) {
    json["predicted_busbw"] = Short(BusGigabytes(answer, *running));
  }
  if (answer.prediction.library_default.has_value()) {
    json["default"] = {{"seconds", Short(std::exp(answer.prediction.library_default->log_seconds))},
                       {"busbw", Short(BusGigabytes(answer, *answer.prediction.library_default))}};
  }
  if (choice.best.has_value()) json["best"] = CandidateJson(library, answer, *choice.best);
  if (choice.runner_up.has_value()) {
    json["runner_up"] = CandidateJson(library, answer, *choice.runner_up);
  }
  if (choice.gain.has_value() && std::isfinite(choice.gain->high)) {
    json["gain"] = {{"expected", Short(choice.gain->expected)},
                    {"low", Short(choice.gain->low)},
                    {"high", Short(choice.gain->high)}};
  }
  if (answer.asked.has_value()) {
    json["asked"] = CandidateJson(library, answer, *answer.asked);
    const auto gain = model::GainOf(answer.prediction, *answer.asked);
    if (gain.has_value() && std::isfinite(gain->high)) {
      json["asked"]["gain"] = {{"expected", Short(gain->expected)},
                               {"low", Short(gain->low)},
                               {"high", Short(gain->high)}};
    }
  }
  json["candidates"] = ordered_json::array();
  for (const model::PredictedConfig& one : answer.prediction.candidates) {
    json["candidates"].push_back(CandidateJson(library, answer, one));
  }
  json["caveats"] = answer.prediction.caveats;
  return json;
}

Result<std::vector<uint64_t>> SizesOf(const Predict& asked) {
  if (!asked.sizes.empty()) return ParseSizes(asked.sizes);
  ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(asked.size));
  return std::vector<uint64_t>{bytes};
}

// The configuration that --algorithm, --protocol and --channels name.
Result<Config> AskedConfig(Library library, Collective collective, const Predict& asked) {
  Config config;
  ASSIGN_OR_RETURN(config.algorithm, ParseAlgorithm(library, collective, asked.algorithm));
  if (!asked.protocol.empty()) {
    ASSIGN_OR_RETURN(config.protocol, ParseProtocol(library, asked.protocol));
  }
  config.channels = asked.channels;
  return config;
}

Status FindAsked(const model::Predictor& predictor, const Config& config,
                 const model::Predictor::Request& wanted, PredictAnswer* answer) {
  model::Predictor::Request request = wanted;
  request.beyond = true;
  request.families = {model::FamilyOf(config)};
  for (const model::PredictedConfig& one : predictor.Look(request).candidates) {
    if (one.config == config) answer->asked = one;
  }
  if (answer->asked.has_value()) return {};
  return NotFound("the model knows nothing about " +
                  ConfigText(predictor.library(), request.place.collective, config) + " for " +
                  model::PlaceText(request.place) +
                  (config.channels == 0 ? "; give --channels as well" : ""));
}

Result<int> RunPredict(const Predict& asked) {
  model::ChannelSearchOptions options;
  options.coarse = asked.search == "coarse";
  RETURN_IF_ERROR(ReadChoiceFlags(asked.flags, &options.choice));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> sizes, SizesOf(asked));
  const Result<model::Model> model = model::ModelFile::Load(asked.model);
  if (!model.ok()) return model.status();
  const model::Predictor& predictor = model.value().predictor;
  const Library library = predictor.library();
  ASSIGN_OR_RETURN(const Collective collective, ParseCollective(library, asked.collective));
  if (asked.ranks % asked.nodes != 0) {
    Warn(Format("{} GPUs cannot be distributed evenly over {} nodes", asked.ranks, asked.nodes));
  }
  std::vector<PredictAnswer> answers;
  for (const uint64_t bytes : sizes) {
    PredictAnswer answer;
    answer.bytes = bytes;
    const model::Predictor::Request request{
        {collective, asked.nodes, asked.ranks}, bytes, asked.beyond, {}};
    answer.choice = model::FindOptimalConfig(predictor, request, options);
    answer.prediction = predictor.Look(request);
    if (!asked.algorithm.empty()) {
      ASSIGN_OR_RETURN(const Config config, AskedConfig(library, collective, asked));
      RETURN_IF_ERROR(FindAsked(predictor, config, request, &answer));
    }
    answers.push_back(std::move(answer));
  }
  if (asked.json) {
    ordered_json json = {{"collective", std::string(CollectiveName(collective))},
                         {"nodes", asked.nodes},
                         {"gpus", asked.ranks},
                         {"library", std::string(LibraryName(library))},
                         {"simulated", model.value().info.simulated},
                         {"answers", ordered_json::array()}};
    for (const PredictAnswer& answer : answers)
      json["answers"].push_back(AnswerJson(library, answer));
    PrintOut("{}\n", JsonText(json));
    return kExitFine;
  }
  if (model.value().info.simulated) Warn("the model was trained on simulated data");
  if (!asked.algorithm.empty()) {
    PrintAsked(library, asked, answers);
  } else if (asked.sizes.empty()) {
    PrintOne(library, asked, answers.front());
  } else {
    PrintTable(library, answers);
  }
  return kExitFine;
}

}  // namespace

void AddPredict(CommandLine* parent, CommandAction* run) {
  auto asked = std::make_shared<Predict>();
  CommandLine* command = parent->AddCommand(
      "predict", "Ask a model for the best algorithm, protocol and number of channels");
  command->AddOption("--model", asked->model, "Model file that `train` wrote")
      ->TypeName("FILE")
      ->Required();
  command
      ->AddOption("--collective", asked->collective,
                  "Collective to predict: " + Join(TunedCollectives(), ", "))
      ->TypeName("NAME")
      ->Words(TunedCollectives())
      ->Check(ReadBy([](const std::string& name) { return ParseCollective(Library::kGloo, name); }))
      ->Required();
  command->AddOption("--nodes", asked->nodes, "Number of nodes")->Required()->Check(Positive());
  command->AddOption("--gpus,--ranks", asked->ranks, "Total number of ranks on all nodes")
      ->Required()
      ->Check(Positive());
  CommandLine* const size = command->AddGroup("Sizes", "Exactly one of the two is required.");
  size->AddOption("--size", asked->size, "One message size, such as 16M, with all details")
      ->TypeName("SIZE")
      ->Check(ReadBy(ParseBytes));
  size->AddOption("--sizes", asked->sizes,
                  std::string("Several message sizes, printed as a table: ") + kSizesText)
      ->TypeName("SIZES")
      ->Check(ReadBy(ParseSizes));
  size->RequireOneOption();
  command->Heading("One configuration");
  Option* const algorithm =
      command
          ->AddOption("--algorithm", asked->algorithm,
                      "Predict this configuration instead of searching for the best")
          ->TypeName("NAME");
  command->AddOption("--protocol", asked->protocol, "Protocol of the configuration")
      ->TypeName("NAME")
      ->Needs(algorithm);
  command->AddOption("--channels", asked->channels, "Number of channels of the configuration")
      ->Check(Positive())
      ->Needs(algorithm);
  command->Heading("Selection");
  command
      ->AddOption("--search", asked->search,
                  "Search over channel counts. exhaustive: every count; coarse: every fourth "
                  "count, then those around the best")
      ->TypeName("WORD")
      ->Check(OneOf({"exhaustive", "coarse"}))
      ->Default("exhaustive");
  command->AddFlag("--beyond", asked->beyond,
                   "Also consider channel counts outside the measured range");
  AddChoiceFlags(command, &asked->flags, {});
  command->Heading("");
  command->AddJson(asked->json);
  command->AddFormat();
  command->Example(
      "diapason predict --model my.model --collective allreduce --nodes 1 --ranks 8 --size 16M",
      "Predict the best configuration for one size");
  command->SeeAlso({"train", "plan"});
  command->Callback([asked, run] { *run = [asked] { return RunPredict(*asked); }; });
}

}  // namespace diapason::cli
