#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/framework/command_line.h"
#include "cli/framework/json_text.h"
#include "cli/framework/read_by.h"
#include "cli/framework/words.h"
#include "domain/fingerprint.h"
#include "policy/inline.h"
#include "policy/openmpi_rules.h"
#include "policy/parse.h"
#include "policy/source.h"
#include "policy/table.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using nlohmann::ordered_json;

struct PolicyOptions {
  std::vector<std::string> files;
  std::string file;
  std::string library;  // library of a file that names none
  bool json = false;
  // show; convert to openmpi-rules; 0 means any
  int64_t nodes = 0;
  int64_t ranks = 0;
  int pipe_ops = 1;
  int reg_buff = -1;
  std::string collective;
  // convert
  std::string output;
  std::string to;
  std::string format = "csv";
  std::string origin;
  std::string fingerprint;
  bool accept_edits = false;
  // env
  bool value_only = false;
};

Result<policy::ParseOptions> ParseOptionsOf(const PolicyOptions& options) {
  policy::ParseOptions parse;
  parse.ignore_checksum = options.accept_edits;
  if (options.library.empty()) return parse;
  ASSIGN_OR_RETURN(const Library library, ParseLibrary(options.library));
  parse.library = library;
  return parse;
}

std::string Dump(const ordered_json& value) { return JsonText(value); }

// The policy of a file or, without one, the policy that the settings select, found as the plugin
// finds it. Policies of every library are accepted here; only the plugin requires its own.
Result<policy::Policy> Load(const PolicyOptions& options, std::string* name) {
  ASSIGN_OR_RETURN(const policy::ParseOptions parse, ParseOptionsOf(options));
  policy::Source source{policy::Source::Kind::kFile, options.file, ""};
  if (options.file.empty()) {
    const Settings settings = Settings::Read(ProcessEnvironment());
    if (!settings.problems().empty()) return Invalid(settings.problems().front());
    source = policy::FindSource(settings);
    if (source.kind == policy::Source::Kind::kNone) {
      return Invalid("no policy: give a file, or set DIAPASON_POLICY or DIAPASON_POLICY_INLINE");
    }
  }
  *name = source.name;
  if (source.kind == policy::Source::Kind::kInline) return policy::DecodeInline(source.text);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(source.name, policy::kMostBytes));
  return policy::ParseStrictly(text, source.name, parse);
}

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
    std::printf("%s\n", PrintableLines(policy::DiagnosticText(file, diagnostic)).c_str());
  }
  const size_t shown = outcome.diagnostics.size();
  if (outcome.errors + outcome.warnings > shown) {
    std::printf("%s: and %zu more\n", file.c_str(), outcome.errors + outcome.warnings - shown);
  }
  if (outcome.errors > 0) {
    std::printf("%s: %s; the whole file is rejected\n", file.c_str(),
                Count(outcome.errors, "error").c_str());
    return kExitFailed;
  }
  std::printf("%s: valid, %s for %s%s, %s, %s\n", file.c_str(),
              Count(outcome.policy.rules.size(), "row").c_str(),
              std::string(LibraryTitle(outcome.policy.library)).c_str(),
              outcome.names_library ? "" : " (the file names no library)",
              Count(outcome.warnings, "warning").c_str(),
              policy::DigestText(policy::Digest(outcome.policy)).c_str());
  return kExitFine;
}

Result<int> RunCheck(const PolicyOptions& options) {
  ASSIGN_OR_RETURN(const policy::ParseOptions parse, ParseOptionsOf(options));
  ordered_json list = ordered_json::array();
  int status = kExitFine;
  for (const std::string& file : options.files) {
    status = std::max(status, CheckOne(file, parse, options.json ? &list : nullptr));
  }
  if (options.json) std::printf("%s\n", Dump(list).c_str());
  return status;
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

Result<int> RunShow(const PolicyOptions& options) {
  std::string name;
  const Result<policy::Policy> policy = Load(options, &name);
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
                range.entry == nullptr ? "" : Format("%d", range.entry->line)});
    }
  }
  const std::string digest = policy::DigestText(policy::Digest(policy.value()));
  if (options.json) {
    std::printf("%s\n", Dump({{"policy", name},
                              {"library", LibraryName(policy.value().library)},
                              {"digest", digest},
                              {"nodes", options.nodes},
                              {"ranks", options.ranks},
                              {"ranges", list}})
                            .c_str());
    return kExitFine;
  }
  std::printf("%s: %zu of %s for %s and %s (%s, %s)\n\n%s", name.c_str(), table.row_count(),
              Count(policy.value().rules.size(), "row").c_str(),
              Count(static_cast<size_t>(options.nodes), "node").c_str(),
              Count(static_cast<size_t>(options.ranks), "rank").c_str(),
              std::string(LibraryTitle(policy.value().library)).c_str(), digest.c_str(),
              text.Text().c_str());
  if (table.skipped_reg_buff_rows() > 0) {
    std::printf("\n%s depend on regBuff and are skipped; use --reg-buff 0 or 1 to show them\n",
                Count(table.skipped_reg_buff_rows(), "row").c_str());
  }
  return kExitFine;
}

constexpr const char* kRulesFormat = "openmpi-rules";

Result<int> WriteOut(const PolicyOptions& options, const std::string& text) {
  if (options.output.empty()) {
    std::printf("%s", text.c_str());
    return kExitFine;
  }
  RETURN_IF_ERROR(WriteFileAtomically(options.output, text));
  return kExitFine;
}

Result<int> WriteRules(const PolicyOptions& options, const std::string& name,
                       const policy::Policy& policy) {
  std::vector<std::string> notes;
  const Result<std::string> rules =
      policy::OpenMpiRulesText(policy, &notes, options.nodes == 0 ? policy::kAny : options.nodes);
  if (!rules.ok()) return rules.status().WithContext(name);
  for (const std::string& note : notes) Warn(name + ": " + note);
  return WriteOut(options, rules.value());
}

Result<int> RunConvert(const PolicyOptions& options) {
  std::string name;
  ASSIGN_OR_RETURN(policy::Policy loaded, Load(options, &name));
  policy::Policy policy = std::move(loaded);
  if (!options.to.empty()) {
    ASSIGN_OR_RETURN(const Library library, ParseLibrary(options.to));
    const auto in = [](Library one, Library a, Library b) { return one == a || one == b; };
    if (library != policy.library && !(in(library, Library::kNccl, Library::kRccl) &&
                                       in(policy.library, Library::kNccl, Library::kRccl))) {
      return Invalid(name + ": a policy for " + std::string(LibraryTitle(policy.library)) +
                     " does not apply to " + std::string(LibraryTitle(library)) +
                     ", which has other algorithms; only NCCL and RCCL have the same");
    }
    policy.library = library;
  }
  if (!options.origin.empty()) policy.header.origin = options.origin;
  if (options.fingerprint == "here") {
    policy.header.fingerprint = MachineFingerprint();
    if (policy.header.fingerprint.empty()) {
      return Unavailable("no driver on this machine lists its GPUs; give the fingerprint as text");
    }
  } else if (!options.fingerprint.empty()) {
    policy.header.fingerprint = options.fingerprint;
  }
  const std::string text = policy::PolicyText(policy);
  // Names and limits of the other library may differ: check that the result can be read back.
  const Result<policy::Policy> again =
      policy::ParseStrictly(text, options.output.empty() ? "converted policy" : options.output, {});
  if (!again.ok()) {
    return again.status().WithContext("the policy cannot be written for " +
                                      std::string(LibraryTitle(policy.library)));
  }
  if (options.format == kRulesFormat) return WriteRules(options, name, policy);
  if (options.nodes != 0) {
    return Invalid(
        Format("--nodes belongs to --format %s: the rows of a policy file name nodes themselves",
               kRulesFormat));
  }
  return WriteOut(options, text);
}

Result<int> RunEnv(const PolicyOptions& options) {
  std::string name;
  const Result<policy::Policy> policy = Load(options, &name);
  if (!policy.ok()) return policy.status();
  const std::string word = policy::EncodeInline(policy.value());
  if (word.size() > policy::kLongestInline) {
    return Unavailable(
        Format("the policy has %zu characters, and a variable holds at most %zu; use a "
               "file that every host can read",
               word.size(), policy::kLongestInline));
  }
  std::printf("%s%s\n", options.value_only ? "" : "export DIAPASON_POLICY_INLINE=", word.c_str());
  return kExitFine;
}

void AddFile(CommandLine* command, PolicyOptions* options) {
  command->AddOption("FILE", options->file, "Policy file to read")
      ->Default("the policy that the environment selects");
}

void AddLibrary(CommandLine* command, PolicyOptions* options) {
  command
      ->AddOption("--library", options->library,
                  "Library of a file that names none: nccl, rccl, gloo or openmpi")
      ->TypeName("NAME")
      ->Words(LibraryWords())
      ->Check(ReadBy(ParseLibrary))
      ->Default("nccl");
}

CommandLine* DeclareCheck(CommandLine* policy, PolicyOptions* options) {
  CommandLine* check = policy->AddCommand(
      "check", "Check policy files strictly and report each error with its position");
  check->AddOption("FILE", options->files, "Policy files to check")->Required();
  AddLibrary(check, options);
  check->AddJson(options->json);
  check->Example("diapason policy check my.conf", "Report every error with its line and column");
  check->ExitStatus(kExitFailed, "a file is invalid or cannot be read");
  return check;
}

CommandLine* DeclareShow(CommandLine* policy, PolicyOptions* options) {
  CommandLine* show = policy->AddCommand(
      "show", "Show the choice for each size range of one communicator shape, including gaps");
  AddFile(show, options);
  AddLibrary(show, options);
  show->AddOption("--nodes", options->nodes, "Number of nodes of the communicator")
      ->Required()
      ->Check(Range(int64_t{1}, int64_t{INT32_MAX}));
  show->AddOption("--ranks", options->ranks, "Number of ranks of the communicator")
      ->Required()
      ->Check(Range(int64_t{1}, int64_t{INT32_MAX}));
  show->AddOption("--collective", options->collective, "Show only this collective")
      ->TypeName("NAME")
      ->Words(TunedCollectives())
      ->Check(
          ReadBy([](const std::string& name) { return ParseCollective(Library::kGloo, name); }));
  show->AddOption("--pipe-ops", options->pipe_ops, "Value of numPipeOps of the call")
      ->ShowDefault();
  show->AddOption("--reg-buff", options->reg_buff,
                  "Value of regBuff of the call; includes rows that depend on it")
      ->TypeName("0|1")
      ->Check(Range(0, 1));
  show->AddJson(options->json);
  show->Example("diapason policy show my.conf --nodes 1 --ranks 8",
                "Show what runs at each size on 8 ranks of one node");
  return show;
}

CommandLine* DeclareConvert(CommandLine* policy, PolicyOptions* options) {
  CommandLine* convert = policy->AddCommand(
      "convert", "Write a policy in its canonical form, or as a rules file for Open MPI");
  AddFile(convert, options);
  AddLibrary(convert, options);
  convert->AddOutput(options->output, "File to write")->Default("standard output");
  convert
      ->AddOption(
          "--format", options->format,
          "Output format. csv: a policy file; openmpi-rules: a dynamic rules file for mpirun")
      ->TypeName("WORD")
      ->Check(OneOf({"csv", kRulesFormat}))
      ->ShowDefault();
  convert
      ->AddOption("--nodes", options->nodes,
                  "Node count of the jobs that an openmpi-rules file is for; rows for other counts "
                  "are left out")
      ->Check(Range(int64_t{1}, int64_t{INT32_MAX}));
  convert
      ->AddOption(
          "--to", options->to,
          "Library to write the policy for; NCCL and RCCL policies can be converted to each other")
      ->TypeName("NAME")
      ->Words(LibraryWords())
      ->Check(ReadBy(ParseLibrary));
  convert->AddOption("--origin", options->origin, "Origin of the policy, written to its header");
  convert->AddOption(
      "--fingerprint", options->fingerprint,
      "Machine that the policy is for: a text, or 'here' for the GPUs of this machine");
  convert->AddFlag("--accept-edits", options->accept_edits,
                   "Accept rows that do not match the checksum of the file");
  convert->Example("diapason policy convert my.conf --accept-edits -o new.conf",
                   "Accept a file that was edited by hand");
  convert->Example("diapason policy convert my.conf --format openmpi-rules",
                   "Write the same policy as a rules file for mpirun");
  return convert;
}

CommandLine* DeclareEnv(CommandLine* policy, PolicyOptions* options) {
  CommandLine* env = policy->AddCommand(
      "env", "Print a whole policy as one environment variable, for launchers to pass to ranks");
  AddFile(env, options);
  AddLibrary(env, options);
  env->AddFlag("--value", options->value_only,
               "Print only the value, without the name of the variable");
  env->Example("eval \"$(diapason policy env my.conf)\"",
               "Apply the policy to the jobs of this shell");
  return env;
}

}  // namespace

void AddPolicy(CommandLine* parent, CommandAction* run) {
  auto options = std::make_shared<PolicyOptions>();
  CommandLine* policy =
      parent->AddCommand("policy", "Check, show, convert and distribute policy files");
  policy->Describe(
      "A policy is a file of rows; each row selects a configuration for some calls. "
      "docs/formats/policy.md describes the format.");
  policy->Example("diapason policy check my.conf", "Check whether a policy file is valid");
  policy->RequireCommand();
  policy->SeeAlso({"ask", "plan"});
  const auto on = [options, run](CommandLine* command, int (*function)(const PolicyOptions&)) {
    command->Callback(
        [options, run, function] { *run = [options, function] { return function(*options); }; });
  };
  on(DeclareCheck(policy, options.get()), RunCheck);
  on(DeclareShow(policy, options.get()), RunShow);
  on(DeclareConvert(policy, options.get()), RunConvert);
  on(DeclareEnv(policy, options.get()), RunEnv);
}

}  // namespace diapason::cli
