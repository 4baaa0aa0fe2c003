#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/secrets.h"
#include "base/text.h"
#include "cli/commands/journal/mpi_profile_text.h"
#include "cli/commands/run/run.h"
#include "cli/framework/findings.h"
#include "cli/framework/json_text.h"
#include "domain/library_version.h"
#include "job_profile/turns_json.h"

namespace diapason::cli {
namespace {

using nlohmann::ordered_json;

ordered_json Variables(const job::PreparedJob& prepared) {
  ordered_json variables = ordered_json::object();
  for (const job::RankVariable& one : prepared.variables) {
    variables[one.name] = MaskSecrets(one.name, one.value);
  }
  return variables;
}

ordered_json Setup(const job::PreparedJob& prepared) {
  return {{"command", prepared.handed.words},
          {"launcher", job::LauncherName(prepared.command.Starting().launcher)},
          {"handed_over_by", prepared.handed.way},
          {"mode", job::JobModeName(prepared.mode)},
          {"policy", prepared.policy_name},
          {"learned", prepared.learned},
          {"variables", Variables(prepared)},
          {"findings", ordered_json::parse(FindingsJson(prepared.findings))}};
}

ordered_json ChosenJson(const job::JobOutcome& outcome) {
  ordered_json list = ordered_json::array();
  for (const job::ChosenConfig& one : outcome.chosen) {
    list.push_back({{"collective", CollectiveName(one.collective)},
                    {"least_bytes", one.least_bytes},
                    {"most_bytes", one.most_bytes},
                    {"calls", one.calls},
                    {"algorithm", AlgorithmName(one.library, one.collective, one.config.algorithm)},
                    {"protocol", ProtocolName(one.library, one.config.protocol)},
                    {"channels", one.config.channels},
                    {"line", one.line}});
  }
  return list;
}

ordered_json GainJson(const job::JobOutcome& outcome) {
  ordered_json list = ordered_json::array();
  for (const job::LearnedGain& one : outcome.learned) {
    const bool interval = one.high > 0;
    list.push_back({{"collective", CollectiveName(one.collective)},
                    {"communicator", one.communicator},
                    {"bytes", one.bytes},
                    {"algorithm", AlgorithmName(one.library, one.collective, one.config.algorithm)},
                    {"protocol", ProtocolName(one.library, one.config.protocol)},
                    {"channels", one.config.channels},
                    {"gain", one.gain > 0 ? ordered_json(one.gain) : ordered_json()},
                    {"low", interval ? ordered_json(one.low) : ordered_json()},
                    {"high", interval ? ordered_json(one.high) : ordered_json()},
                    {"times_of", one.iteration ? "iterations" : "calls"}});
  }
  return list;
}

ordered_json ComparedJson(const job::JobOutcome& outcome) {
  if (!outcome.compared.has_value() || !outcome.compared->ok()) return {};
  return job_profile::TurnComparisonJson(outcome.compared->value());
}

const char* AgreementWord(job::JobOutcome::Agreement agreement) {
  switch (agreement) {
    case job::JobOutcome::Agreement::kAgreed:
      return "yes";
    case job::JobOutcome::Agreement::kDiffered:
      return "no";
    case job::JobOutcome::Agreement::kPartly:
      return "partly";
    case job::JobOutcome::Agreement::kNotNeeded:
      return "one rank";
    case job::JobOutcome::Agreement::kUnknown:
      break;
  }
  return "not known";
}

}  // namespace

std::string DryRunText(const job::PreparedJob& prepared) {
  std::string text;
  for (const job::RankVariable& one : prepared.variables) {
    text += "export " + one.name + "=" + ShellWord(MaskSecrets(one.name, one.value)) + "\n";
  }
  std::vector<std::string> words;
  for (const std::string& word : prepared.handed.words) {
    words.push_back(ShellWord(MaskSecretsIn(word)));
  }
  return text + Printable(Join(words, " ")) + "\n# every rank gets the variables by " +
         prepared.handed.way + "\n";
}

std::string DryRunJson(const job::PreparedJob& prepared) { return JsonText(Setup(prepared)); }

std::string RunJson(const job::PreparedJob& prepared, const job::Supervised& ended,
                    const job::JobOutcome& outcome, int status) {
  ordered_json whole = Setup(prepared);
  whole["status"] = status;
  whole["command_status"] = ended.status;
  whole["timed_out"] = ended.limited;
  whole["journals"] = {{"folder", prepared.own_folder != nullptr && !outcome.Differed()
                                      ? ordered_json()
                                      : ordered_json(prepared.journal_dir)},
                       {"files", outcome.journals},
                       {"cut", outcome.cut},
                       {"unreadable", outcome.unreadable}};
  whole["communicators"] = outcome.communicators;
  whole["library_version"] = LibraryVersionText(outcome.library_version);
  whole["calls"] = outcome.calls;
  whole["chosen"] = {{"text", outcome.ChosenText(prepared)}, {"by_call", ChosenJson(outcome)}};
  whole["gained"] = {{"text", outcome.GainText(prepared)},
                     {"by_context", GainJson(outcome)},
                     {"compared", ComparedJson(outcome)}};
  whole["agreed"] = {{"text", outcome.AgreementText(prepared)},
                     {"agreed", AgreementWord(outcome.agreement)},
                     {"ranks", outcome.report.ranks},
                     {"compared_calls", outcome.report.calls},
                     {"different_calls", outcome.report.different_calls},
                     {"different_runs", outcome.report.different_runs},
                     {"problems", outcome.report.problems},
                     {"notes", outcome.report.notes}};
  return JsonText(whole);
}

std::string MpiRunJson(const job::PreparedJob& prepared, const job::Supervised& ended,
                       const Result<mpi_profile::MpiProfile>& profile, int status) {
  ordered_json whole = Setup(prepared);
  whole["status"] = status;
  whole["command_status"] = ended.status;
  whole["timed_out"] = ended.limited;
  whole["profile"] =
      profile.ok() ? ordered_json::parse(MpiProfileJson(profile.value())) : ordered_json();
  whole["no_profile"] = profile.ok() ? "" : profile.status().message();
  return JsonText(whole);
}

}  // namespace diapason::cli
