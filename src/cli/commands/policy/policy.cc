#include <memory>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/policy/policy_options.h"
#include "cli/framework/command_line.h"
#include "cli/framework/read_by.h"
#include "cli/framework/words.h"

namespace diapason::cli {
namespace {

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
  show->AddFormat();
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

CommandLine* DeclareStatus(CommandLine* policy, PolicyOptions* options) {
  CommandLine* status = policy->AddCommand(
      "status", "Say whether a policy still fits the machine, the library and the calls of jobs");
  AddFile(status, options);
  AddLibrary(status, options);
  status
      ->AddOption("--journal", options->journals,
                  "Journals of jobs: which of their calls and of their time the rows cover")
      ->TypeName("FILE");
  status
      ->AddOption("--store", options->store,
                  "Store with the measurements that the policy was made from")
      ->TypeName("STORE")
      ->Default("measurements.db beside the policy, if it is there");
  status->AddJson(options->json);
  status->Example("diapason policy status my.conf --journal j.*",
                  "Say whether to tune again, and why");
  status->ExitStatus(kExitWarnings, "there is a reason to tune again");
  return status;
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
  const auto on = [options, run](CommandLine* command,
                                 Result<int> (*function)(const PolicyOptions&)) {
    command->Callback(
        [options, run, function] { *run = [options, function] { return function(*options); }; });
  };
  on(DeclareCheck(policy, options.get()), RunPolicyCheck);
  on(DeclareShow(policy, options.get()), RunPolicyShow);
  on(DeclareConvert(policy, options.get()), RunPolicyConvert);
  on(DeclareEnv(policy, options.get()), RunPolicyEnv);
  on(DeclareStatus(policy, options.get()), RunPolicyStatus);
}

}  // namespace diapason::cli
