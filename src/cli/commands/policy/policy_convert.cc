#include <cstdio>

#include "base/environment.h"
#include "base/file.h"
#include "base/settings.h"
#include "base/text.h"
#include "cli/commands/policy/policy_options.h"
#include "cli/framework/command.h"
#include "domain/fingerprint.h"
#include "policy/inline.h"
#include "policy/openmpi_rules.h"
#include "policy/source.h"

namespace diapason::cli {
namespace {

Result<int> WriteOut(const PolicyOptions& options, const std::string& text) {
  if (options.output.empty()) {
    PrintOut("{}", text);
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

}  // namespace

Result<policy::ParseOptions> ParseOptionsOf(const PolicyOptions& options) {
  policy::ParseOptions parse;
  parse.ignore_checksum = options.accept_edits;
  if (options.library.empty()) return parse;
  ASSIGN_OR_RETURN(const Library library, ParseLibrary(options.library));
  parse.library = library;
  return parse;
}

Result<policy::Policy> LoadPolicyOf(const PolicyOptions& options, std::string* name) {
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

Result<int> RunPolicyConvert(const PolicyOptions& options) {
  std::string name;
  ASSIGN_OR_RETURN(policy::Policy loaded, LoadPolicyOf(options, &name));
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
        Format("--nodes belongs to --format {}: the rows of a policy file name nodes themselves",
               kRulesFormat));
  }
  return WriteOut(options, text);
}

Result<int> RunPolicyEnv(const PolicyOptions& options) {
  std::string name;
  const Result<policy::Policy> policy = LoadPolicyOf(options, &name);
  if (!policy.ok()) return policy.status();
  const std::string word = policy::EncodeInline(policy.value());
  if (word.size() > policy::kLongestInline) {
    return Unavailable(
        Format("the policy has {} characters, and a variable holds at most {}; use a "
               "file that every host can read",
               word.size(), policy::kLongestInline));
  }
  PrintOut("{}{}\n", options.value_only ? "" : "export DIAPASON_POLICY_INLINE=", word);
  return kExitFine;
}

}  // namespace diapason::cli
