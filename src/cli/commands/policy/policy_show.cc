#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/policy/policy_options.h"
#include "cli/framework/command.h"
#include "cli/framework/json_text.h"
#include "policy/table.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using nlohmann::ordered_json;

int CheckOne(const std::string& file, const policy::ParseOptions& parse, ordered_json* list) {
  const Result<std::string> text = ReadFile(file, policy::kMostBytes);
  if (!text.ok()) {
    if (list != nullptr) {
      list->push_back({{"file", file}, {"ok", false}, {"error", text.status().message()}});
    } else {
      (void)Fail(text.status());
    }
    return kExitFailed;
  }
  const policy::ParseOutcome outcome = policy::ParsePolicy(text.value(), parse);
  if (list != nullptr) {
    ordered_json diagnostics = ordered_json::array();
    for (const policy::Diagnostic& diagnostic : outcome.diagnostics) {
      const bool error = diagnostic.severity == Severity::kError;
      diagnostics.push_back({{"severity", error ? "error" : "warning"},
                             {"line", diagnostic.line},
                             {"column", diagnostic.column},
                             {"message", diagnostic.message}});
    }
    list->push_back({{"file", file},
                     {"ok", outcome.errors == 0},
                     {"library", LibraryName(outcome.policy.library)},
                     {"rows", outcome.policy.rules.size()},
                     {"digest", policy::DigestText(policy::Digest(outcome.policy))},
                     {"errors", outcome.errors},
                     {"warnings", outcome.warnings},
                     {"diagnostics", diagnostics}});
    return outcome.errors == 0 ? kExitFine : kExitFailed;
  }
  for (const policy::Diagnostic& diagnostic : outcome.diagnostics) {
    PrintOut("{}\n", PrintableLines(policy::DiagnosticText(file, diagnostic)));
  }
  const size_t shown = outcome.diagnostics.size();
  if (outcome.errors + outcome.warnings > shown) {
    PrintOut("{}: and {} more\n", file, outcome.errors + outcome.warnings - shown);
  }
  if (outcome.errors > 0) {
    PrintOut("{}: {}; the whole file is rejected\n", file, Count(outcome.errors, "error"));
    return kExitFailed;
  }
  PrintOut("{}: valid, {} for {}{}, {}, {}\n", file, Count(outcome.policy.rules.size(), "row"),
           std::string(LibraryTitle(outcome.policy.library)),
           outcome.names_library ? "" : " (the file names no library)",
           Count(outcome.warnings, "warning"), policy::DigestText(policy::Digest(outcome.policy)));
  return kExitFine;
}

std::string RangeText(uint64_t bytes) {
  return bytes == UINT64_MAX ? "and up" : FormatBytes(bytes);
}

ordered_json RangeJson(const policy::Policy& policy, Collective collective,
                       const policy::ShownRange& range) {
  ordered_json row{{"collective", CollectiveName(collective)},
                   {"first_bytes", range.first},
                   {"last_bytes", range.last}};
  if (range.entry == nullptr) {
    row["choice"] = "library default";
    return row;
  }
  const Config config = range.entry->config();
  row["choice"] = ConfigText(policy.library, collective, config);
  row["algorithm"] = AlgorithmName(policy.library, collective, config.algorithm);
  row["protocol"] = ProtocolName(policy.library, config.protocol);
  row["channels"] = config.channels;
  row["line"] = range.entry->line;
  return row;
}

}  // namespace

Result<int> RunPolicyCheck(const PolicyOptions& options) {
  ASSIGN_OR_RETURN(const policy::ParseOptions parse, ParseOptionsOf(options));
  ordered_json list = ordered_json::array();
  int status = kExitFine;
  for (const std::string& file : options.files) {
    status = std::max(status, CheckOne(file, parse, options.json ? &list : nullptr));
  }
  if (options.json) PrintOut("{}\n", JsonText(list));
  return status;
}

Result<int> RunPolicyShow(const PolicyOptions& options) {
  std::string name;
  const Result<policy::Policy> policy = LoadPolicyOf(options, &name);
  if (!policy.ok()) return policy.status();
  policy::DecisionTable::Options table_options;
  table_options.shape = {options.nodes, options.ranks};
  table_options.use_reg_buff_rows = options.reg_buff >= 0;
  const policy::DecisionTable table(policy.value(), table_options);

  std::vector<Collective> collectives;
  if (!options.collective.empty()) {
    ASSIGN_OR_RETURN(const Collective one,
                     ParseCollective(policy.value().library, options.collective));
    collectives.push_back(one);
  } else {
    for (int c = 0; c < kCollectiveCount; ++c) {
      const auto collective = static_cast<Collective>(c);
      if (!ParseCollective(policy.value().library, CollectiveName(collective)).ok()) continue;
      collectives.push_back(collective);
    }
  }
  ordered_json list = ordered_json::array();
  report::Table text({"collective", "from", "to", "choice", "line"});
  text.SetAlign({report::Table::Align::kLeft, report::Table::Align::kRight,
                 report::Table::Align::kRight, report::Table::Align::kLeft,
                 report::Table::Align::kRight});
  for (const Collective collective : collectives) {
    Question question;
    question.collective = collective;
    question.pipe_ops = options.pipe_ops;
    question.reg_buff = options.reg_buff;
    for (const policy::ShownRange& range : policy::ShowRanges(table, policy.value(), question)) {
      list.push_back(RangeJson(policy.value(), collective, range));
      text.Add({std::string(CollectiveName(collective)), RangeText(range.first),
                RangeText(range.last),
                range.entry == nullptr
                    ? "library default"
                    : ConfigText(policy.value().library, collective, range.entry->config()),
                range.entry == nullptr ? "" : Format("{}", range.entry->line)});
    }
  }
  const std::string digest = policy::DigestText(policy::Digest(policy.value()));
  if (options.json) {
    PrintOut("{}\n", JsonText(ordered_json{{"policy", name},
                                           {"library", LibraryName(policy.value().library)},
                                           {"digest", digest},
                                           {"nodes", options.nodes},
                                           {"ranks", options.ranks},
                                           {"ranges", list}}));
    return kExitFine;
  }
  PrintOut("{}: {} of {} for {} and {} ({}, {})\n\n{}", name, table.row_count(),
           Count(policy.value().rules.size(), "row"),
           Count(static_cast<size_t>(options.nodes), "node"),
           Count(static_cast<size_t>(options.ranks), "rank"),
           std::string(LibraryTitle(policy.value().library)), digest, text.Text());
  if (table.skipped_reg_buff_rows() > 0) {
    PrintOut("\n{} depend on regBuff and are skipped; use --reg-buff 0 or 1 to show them\n",
             Count(table.skipped_reg_buff_rows(), "row"));
  }
  return kExitFine;
}

}  // namespace diapason::cli
