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
  std::string library;  // of a file that names none
  bool json = false;
  // show; convert to rules, 0 for any
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
  const Result<Library> library = ParseLibrary(options.library);
  if (!library.ok()) return library.status();
  parse.library = library.value();
  return parse;
}

std::string Dump(const ordered_json& value) { return JsonText(value); }

// The policy of a file, or, without one, the policy the settings select, as the plugin would find
// it. Any library's policy is welcome here; only the plugin insists on its own.
Result<policy::Policy> Load(const PolicyOptions& options, std::string* name) {
  const Result<policy::ParseOptions> parse = ParseOptionsOf(options);
  if (!parse.ok()) return parse.status();
  policy::Source source{policy::Source::Kind::kFile, options.file, ""};
  if (options.file.empty()) {
    const Settings settings = Settings::Read(ProcessEnvironment());
    if (!settings.problems().empty()) return Invalid(settings.problems().front());
    source = policy::FindSource(settings);
    if (source.kind == policy::Source::Kind::kNone) {
      return Invalid("no policy: name a file, or set DIAPASON_POLICY or DIAPASON_POLICY_INLINE");
    }
  }
  *name = source.name;
  if (source.kind == policy::Source::Kind::kInline) return policy::DecodeInline(source.text);
  const Result<std::string> text = ReadFile(source.name, policy::kMostBytes);
  if (!text.ok()) return text.status();
  return policy::ParseStrictly(text.value(), source.name, parse.value());
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
      const bool error = diagnostic.severity == policy::Diagnostic::Severity::kError;
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
    std::printf("%s: %s; the whole file is refused\n", file.c_str(),
                Count(outcome.errors, "error").c_str());
    return kExitFailed;
  }
  std::printf("%s: fine, %s for %s%s, %s, %s\n", file.c_str(),
              Count(outcome.policy.rules.size(), "row").c_str(),
              std::string(LibraryTitle(outcome.policy.library)).c_str(),
              outcome.names_library ? "" : " (the file names no library)",
              Count(outcome.warnings, "warning").c_str(),
              policy::DigestText(policy::Digest(outcome.policy)).c_str());
  return kExitFine;
}

int RunCheck(const PolicyOptions& options) {
  const Result<policy::ParseOptions> parse = ParseOptionsOf(options);
  if (!parse.ok()) return Fail(parse.status());
  ordered_json list = ordered_json::array();
  int status = kExitFine;
  for (const std::string& file : options.files) {
    status = std::max(status, CheckOne(file, parse.value(), options.json ? &list : nullptr));
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

int RunShow(const PolicyOptions& options) {
  std::string name;
  const Result<policy::Policy> policy = Load(options, &name);
  if (!policy.ok()) return Fail(policy.status());
  policy::DecisionTable::Options table_options;
  table_options.shape = {options.nodes, options.ranks};
  table_options.use_reg_buff_rows = options.reg_buff >= 0;
  const policy::DecisionTable table(policy.value(), table_options);

  std::vector<Collective> collectives;
  if (!options.collective.empty()) {
    const Result<Collective> one = ParseCollective(policy.value().library, options.collective);
    if (!one.ok()) return Fail(one.status());
    collectives.push_back(one.value());
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
    std::printf("\n%s depend on regBuff and are skipped; --reg-buff 0 or 1 shows them\n",
                Count(table.skipped_reg_buff_rows(), "row").c_str());
  }
  return kExitFine;
}

constexpr const char* kRulesFormat = "openmpi-rules";

int WriteOut(const PolicyOptions& options, const std::string& text) {
  if (options.output.empty()) {
    std::printf("%s", text.c_str());
    return kExitFine;
  }
  const Status written = WriteFileAtomically(options.output, text);
  return written.ok() ? kExitFine : Fail(written);
}

int WriteRules(const PolicyOptions& options, const std::string& name,
               const policy::Policy& policy) {
  std::vector<std::string> notes;
  const Result<std::string> rules =
      policy::OpenMpiRulesText(policy, &notes, options.nodes == 0 ? policy::kAny : options.nodes);
  if (!rules.ok()) return Fail(rules.status().WithContext(name));
  for (const std::string& note : notes) Warn(name + ": " + note);
  return WriteOut(options, rules.value());
}

int RunConvert(const PolicyOptions& options) {
  std::string name;
  Result<policy::Policy> loaded = Load(options, &name);
  if (!loaded.ok()) return Fail(loaded.status());
  policy::Policy policy = std::move(loaded).value();
  if (!options.to.empty()) {
    const Result<Library> library = ParseLibrary(options.to);
    if (!library.ok()) return Fail(library.status());
    const auto in = [](Library one, Library a, Library b) { return one == a || one == b; };
    if (library.value() != policy.library &&
        !(in(library.value(), Library::kNccl, Library::kRccl) &&
          in(policy.library, Library::kNccl, Library::kRccl))) {
      return Fail(Invalid(name + ": a policy for " + std::string(LibraryTitle(policy.library)) +
                          " says nothing about " + std::string(LibraryTitle(library.value())) +
                          ", whose algorithms are others; only NCCL and RCCL have the same"));
    }
    policy.library = library.value();
  }
  if (!options.origin.empty()) policy.header.origin = options.origin;
  if (options.fingerprint == "here") {
    policy.header.fingerprint = MachineFingerprint();
    if (policy.header.fingerprint.empty()) {
      return Fail(
          Unavailable("no driver on this machine tells its GPUs; write the fingerprint out"));
    }
  } else if (!options.fingerprint.empty()) {
    policy.header.fingerprint = options.fingerprint;
  }
  const std::string text = policy::PolicyText(policy);
  // Names and limits of the other library may differ: what is written must be readable.
  const Result<policy::Policy> again =
      policy::ParseStrictly(text, options.output.empty() ? "converted policy" : options.output, {});
  if (!again.ok()) {
    return Fail(again.status().WithContext("the policy cannot be written for " +
                                           std::string(LibraryTitle(policy.library))));
  }
  if (options.format == kRulesFormat) return WriteRules(options, name, policy);
  if (options.nodes != 0) {
    return Fail(Invalid(
        Format("--nodes belongs to --format %s: a policy file tells nodes itself", kRulesFormat)));
  }
  return WriteOut(options, text);
}

int RunEnv(const PolicyOptions& options) {
  std::string name;
  const Result<policy::Policy> policy = Load(options, &name);
  if (!policy.ok()) return Fail(policy.status());
  const std::string word = policy::EncodeInline(policy.value());
  if (word.size() > policy::kLongestInline) {
    return Fail(
        Unavailable(Format("the policy takes %zu characters, and one variable holds %zu; "
                           "use a file that every host can read",
                           word.size(), policy::kLongestInline)));
  }
  std::printf("%s%s\n", options.value_only ? "" : "export DIAPASON_POLICY_INLINE=", word.c_str());
  return kExitFine;
}

void AddFile(CommandLine* command, PolicyOptions* options) {
  command->AddOption("FILE", options->file, "The policy file")
      ->Default("the one the environment selects");
}

void AddLibrary(CommandLine* command, PolicyOptions* options) {
  command
      ->AddOption("--library", options->library,
                  "The library of a file that names none: nccl, rccl, gloo or openmpi")
      ->TypeName("NAME")
      ->Words(LibraryWords())
      ->Check(ReadBy(ParseLibrary))
      ->Default("nccl");
}

CommandLine* DeclareCheck(CommandLine* policy, PolicyOptions* options) {
  CommandLine* check =
      policy->AddCommand("check", "Read policy files strictly; say what is wrong and where");
  check->AddOption("FILE", options->files, "Policy files")->Required();
  AddLibrary(check, options);
  check->AddJson(options->json);
  check->Example("diapason policy check my.conf", "Every mistake with its line and column");
  check->ExitStatus(kExitFailed, "a file is refused, or cannot be read");
  return check;
}

CommandLine* DeclareShow(CommandLine* policy, PolicyOptions* options) {
  CommandLine* show = policy->AddCommand(
      "show", "Show the decision by size range for one communicator shape, gaps included");
  AddFile(show, options);
  AddLibrary(show, options);
  show->AddOption("--nodes", options->nodes, "Nodes of the communicator")
      ->Required()
      ->Check(Range(int64_t{1}, int64_t{INT32_MAX}));
  show->AddOption("--ranks", options->ranks, "Ranks of the communicator")
      ->Required()
      ->Check(Range(int64_t{1}, int64_t{INT32_MAX}));
  show->AddOption("--collective", options->collective, "Only this collective")
      ->TypeName("NAME")
      ->Words(TunedCollectives())
      ->Check(
          ReadBy([](const std::string& name) { return ParseCollective(Library::kGloo, name); }));
  show->AddOption("--pipe-ops", options->pipe_ops, "numPipeOps of the call")->ShowDefault();
  show->AddOption("--reg-buff", options->reg_buff,
                  "regBuff of the call; uses rows that depend on it")
      ->TypeName("0|1")
      ->Check(Range(0, 1));
  show->AddJson(options->json);
  show->Example("diapason policy show my.conf --nodes 1 --ranks 8",
                "What is run at which size on 8 ranks of one node");
  return show;
}

CommandLine* DeclareConvert(CommandLine* policy, PolicyOptions* options) {
  CommandLine* convert = policy->AddCommand(
      "convert", "Write a policy in its standard form, or as a rules file for Open MPI");
  AddFile(convert, options);
  AddLibrary(convert, options);
  convert->AddOutput(options->output, "The file to write")->Default("standard output");
  convert
      ->AddOption("--format", options->format,
                  "csv: the policy file; openmpi-rules: a dynamic rules file, which mpirun reads")
      ->TypeName("WORD")
      ->Check(OneOf({"csv", kRulesFormat}))
      ->ShowDefault();
  convert
      ->AddOption("--nodes", options->nodes,
                  "With openmpi-rules: the nodes of the jobs it is for; rows for others are left "
                  "out")
      ->Check(Range(int64_t{1}, int64_t{INT32_MAX}));
  convert
      ->AddOption("--to", options->to,
                  "The library to write it for: NCCL and RCCL take each other's policies")
      ->TypeName("NAME")
      ->Words(LibraryWords())
      ->Check(ReadBy(ParseLibrary));
  convert->AddOption("--origin", options->origin, "Where the policy comes from, for its header");
  convert->AddOption("--fingerprint", options->fingerprint,
                     "The machine it is for: a text, or 'here' for this machine's GPUs");
  convert->AddFlag("--accept-edits", options->accept_edits,
                   "Read rows that no longer add up to the file's checksum");
  convert->Example("diapason policy convert my.conf --accept-edits -o new.conf",
                   "Take in what somebody has edited");
  convert->Example("diapason policy convert my.conf --format openmpi-rules", "The same for mpirun");
  return convert;
}

CommandLine* DeclareEnv(CommandLine* policy, PolicyOptions* options) {
  CommandLine* env = policy->AddCommand(
      "env", "Print the whole policy as one variable, which launchers copy to every rank");
  AddFile(env, options);
  AddLibrary(env, options);
  env->AddFlag("--value", options->value_only, "Print the value alone");
  env->Example("eval \"$(diapason policy env my.conf)\"", "Give it to the jobs of this shell");
  return env;
}

}  // namespace

void AddPolicy(CommandLine* parent, CommandAction* run) {
  auto options = std::make_shared<PolicyOptions>();
  CommandLine* policy = parent->AddCommand("policy", "Check, show, convert and send policy files");
  policy->Describe(
      "A policy is a file of rows: for these calls, run that. docs/formats/policy.md describes "
      "it.");
  policy->Example("diapason policy check my.conf", "Is the file right?");
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
