#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/model/model_data.h"
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
  bool beyond = false;
  bool json = false;
  ChoiceFlags flags;
};

// One answer with all values that are printed.
struct PredictAnswer {
  uint64_t bytes = 0;
  model::Prediction prediction;
  model::ModelChoice choice;
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
  if (!std::isfinite(gain.high)) return Format("%.2f x [?, ?]", gain.expected);
  return Format("%.2f x [%.2f, %.2f]", gain.expected, gain.low, gain.high);
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
  std::printf("Optimal config for %s (%s, %s, %s):\n", asked.collective.c_str(),
              Count(static_cast<size_t>(asked.nodes), "node").c_str(),
              Count(static_cast<size_t>(asked.ranks), "GPU").c_str(),
              FormatBytes(answer.bytes).c_str());
  const ConfigWords words = WordsOf(library, answer);
  std::printf("  algo: %s\n  proto: %s\n  nchannels: %s\n", words.algorithm.c_str(),
              words.protocol.c_str(), words.channels.c_str());
  if (const auto running = Running(answer); running.has_value()) {
    std::printf("  predicted_busbw: %.1f GB/s\n", BusGigabytes(answer, *running));
  }
  if (choice.leave_default) {
    std::printf("  keep the default: %s\n", choice.why.c_str());
    if (choice.best.has_value() && choice.gain.has_value()) {
      std::printf("  best alternative: %s, %s of the default's speed\n",
                  ConfigOf(library, answer, choice.best).c_str(), GainText(*choice.gain).c_str());
    }
  } else {
    std::printf("  gain over the default: %s\n",
                choice.gain.has_value() ? GainText(*choice.gain).c_str() : choice.why.c_str());
    std::printf("  known from: %s\n", model::BasisName(choice.best->basis));
    if (choice.runner_up.has_value()) {
      std::printf("  runner-up: %s, %.1f GB/s\n",
                  ConfigOf(library, answer, choice.runner_up).c_str(),
                  BusGigabytes(answer, choice.runner_up->estimate));
    }
  }
  for (const std::string& caveat : answer.prediction.caveats) Warn(caveat);
}

void PrintTable(Library library, const std::vector<PredictAnswer>& answers) {
  using Align = report::Table::Align;
  report::Table table({"size", "algo", "proto", "nchannels", "predicted_busbw", "gain over default",
                       "known from", "runner-up", "why"});
  table.SetAlign(
      {Align::kRight, Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  for (const PredictAnswer& answer : answers) {
    const ConfigWords words = WordsOf(library, answer);
    const auto running = Running(answer);
    const model::ModelChoice& choice = answer.choice;
    table.Add({FormatBytes(answer.bytes), words.algorithm, words.protocol, words.channels,
               running.has_value() ? Format("%.1f GB/s", BusGigabytes(answer, *running)) : "-",
               choice.gain.has_value() ? GainText(*choice.gain) : "-",
               choice.best.has_value() ? model::BasisName(choice.best->basis) : "-",
               ConfigOf(library, answer, choice.leave_default ? choice.best : choice.runner_up),
               choice.leave_default ? "keep the default: " + choice.why : choice.why});
  }
  std::printf("%s", table.Text().c_str());
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
          {"doubt", Short(one.estimate.doubt)},
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
  json["caveats"] = answer.prediction.caveats;
  return json;
}

Result<std::vector<uint64_t>> SizesOf(const Predict& asked) {
  if (!asked.sizes.empty()) return ParseSizes(asked.sizes);
  ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(asked.size));
  return std::vector<uint64_t>{bytes};
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
    Warn(Format("%d GPUs cannot be distributed evenly over %d nodes", asked.ranks, asked.nodes));
  }
  std::vector<PredictAnswer> answers;
  for (const uint64_t bytes : sizes) {
    PredictAnswer answer;
    answer.bytes = bytes;
    const model::Predictor::Request request{
        {collective, asked.nodes, asked.ranks}, bytes, asked.beyond, {}};
    answer.choice = model::FindOptimalConfig(predictor, request, options);
    answer.prediction = predictor.Look(request);
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
    std::printf("%s\n", JsonText(json).c_str());
    return kExitFine;
  }
  if (model.value().info.simulated) Warn("the model was trained on simulated data");
  if (asked.sizes.empty()) {
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
  command->Example(
      "diapason predict --model my.model --collective allreduce --nodes 1 --ranks 8 --size 16M",
      "Predict the best configuration for one size");
  command->SeeAlso({"train", "plan"});
  command->Callback([asked, run] { *run = [asked] { return RunPredict(*asked); }; });
}

}  // namespace diapason::cli
