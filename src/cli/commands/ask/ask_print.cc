#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/ask/ask_plugin.h"
#include "cli/framework/json_text.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using nlohmann::ordered_json;

std::string Why(const AskedAnswer& answer, const policy::Policy* policy) {
  if (answer.no_call)
    return "the question is about no call: numPipeOps is 0, or nothing is offered";
  if (!answer.recorded) return "the plugin stepped aside";
  const std::string sentence(ReasonSentence(answer.record.reason));
  if (answer.record.line == 0) return sentence;
  std::string row = Format("line {}", answer.record.line);
  if (policy != nullptr) {
    for (const policy::Rule& rule : policy->rules) {
      if (rule.line == answer.record.line) row += ": " + RuleText(policy->library, rule);
    }
  }
  if (answer.record.reason != Reason::kRow) row += " (" + sentence + ")";
  return answer.record.applied || answer.record.reason != Reason::kRow
             ? row
             : row + " (observed only, not applied)";
}

std::string ChoiceText(const AskedAnswer& answer, Library library) {
  if (!answer.recorded || !answer.record.applied) return "library default";
  Config config = answer.takes;
  if (answer.record.algorithm == kKeep && answer.record.protocol == kKeep) {
    config.algorithm = kKeep;
    config.protocol = kKeep;
  }
  return ConfigText(library, answer.question.collective, config);
}

std::string PolicyLine(const AskResult& result) {
  if (result.in_use == nullptr) return "(the plugin stepped aside)";
  const journal::JournalComm& communicator = *result.in_use;
  if (communicator.policy.empty()) return "(none in use)";
  return Format("{}, {}, {}", communicator.policy, Count(communicator.rows, "matching row"),
                communicator.digest);
}

}  // namespace

std::string AskText(const AskResult& result) {
  std::string text = Format("plugin  {} (tuner API v{}, as {})\n", result.plugin, result.api,
                            std::string(LibraryTitle(result.library)));
  text += "policy  " + PolicyLine(result) + "\n";
  text += "shape   " + Count(static_cast<size_t>(result.shape.nodes), "node") + ", " +
          Count(static_cast<size_t>(result.shape.ranks), "rank") + "\n";
  if (result.api >= 3) {
    text +=
        "table   " +
        (result.table.empty() ? "none recorded: every pair that the collective can run is offered"
                              : result.table) +
        "\n";
  }
  std::vector<std::string> titles{"collective", "size", "choice", "why"};
  const bool with_default = !result.table.empty() && result.api >= 3;
  if (with_default) titles.insert(titles.begin() + 2, {"library alone", "table of"});
  report::Table table(titles);
  table.SetAlign({report::Table::Align::kLeft, report::Table::Align::kRight});
  for (const AskedAnswer& answer : result.answers) {
    const Collective collective = answer.question.collective;
    std::vector<std::string> row{
        std::string(CollectiveName(collective)), FormatBytes(answer.question.bytes),
        ChoiceText(answer, result.library), Why(answer, result.policy.get())};
    if (with_default) {
      row.insert(row.begin() + 2, {ConfigText(result.library, collective, answer.by_default),
                                   FormatBytes(answer.table_bytes)});
    }
    table.Add(row);
  }
  return text + "\n" + table.Text();
}

std::string AskJson(const AskResult& result) {
  ordered_json list = ordered_json::array();
  const Library library = result.library;
  for (const AskedAnswer& answer : result.answers) {
    const Collective collective = answer.question.collective;
    ordered_json row{{"collective", CollectiveName(collective)},
                     {"bytes", answer.question.bytes},
                     {"applied", answer.recorded && answer.record.applied},
                     {"choice", ChoiceText(answer, library)},
                     {"algorithm", AlgorithmName(library, collective, answer.takes.algorithm)},
                     {"protocol", ProtocolName(library, answer.takes.protocol)},
                     {"channels", answer.takes.channels},
                     {"reason", answer.no_call    ? "no-call"
                                : answer.recorded ? ReasonName(answer.record.reason)
                                                  : "off"},
                     {"line", answer.record.line},
                     {"why", Why(answer, result.policy.get())}};
    if (!result.table.empty()) {
      row["default_algorithm"] = AlgorithmName(library, collective, answer.by_default.algorithm);
      row["default_protocol"] = ProtocolName(library, answer.by_default.protocol);
      row["table_bytes"] = answer.table_bytes;
    }
    list.push_back(row);
  }
  ordered_json log = ordered_json::array();
  for (const client::LogLine& line : result.log) {
    log.push_back({{"level", line.warning ? "warning" : "info"}, {"text", line.text}});
  }
  const journal::JournalComm* in_use = result.in_use.get();
  return JsonText(ordered_json{{"plugin", result.plugin},
                               {"api", result.api},
                               {"library", LibraryName(library)},
                               {"nodes", result.shape.nodes},
                               {"ranks", result.shape.ranks},
                               {"policy", in_use != nullptr ? in_use->policy : ""},
                               {"digest", in_use != nullptr ? in_use->digest : ""},
                               {"rows", in_use != nullptr ? in_use->rows : 0},
                               {"table", result.table},
                               {"log", log},
                               {"answers", list}}) +
         "\n";
}

}  // namespace diapason::cli
