#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/environment.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/env/env_check_input.h"
#include "cli/commands/env/knobs_options.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/findings.h"
#include "cli/framework/json_text.h"
#include "cli/framework/words.h"
#include "doctor/site_profiler.h"
#include "doctor/site_tuner.h"
#include "domain/library_version.h"
#include "host/job_library.h"
#include "host/process.h"
#include "knobs/check.h"
#include "knobs/files/read_file.h"

namespace diapason::cli {
namespace {

using host::LibraryFile;
using knobs::Assignment;
using knobs::CheckedFor;

struct EnvCheckOptions {
  std::string file;
  int pid = 0;
  std::string library;
  std::string version;
  std::string library_file;
  bool all = false;
  bool json = false;
};

// The library to check for, and how it was determined.
struct Assumed {
  CheckedFor checked_for;
  std::string why;
};

// The library that a process has loaded.
bool FromProcess(const RootFs& tree, int pid, Assumed* assumed) {
  const Result<std::vector<host::MappedFile>> files = host::MappedLibraries(tree, pid);
  if (!files.ok()) return false;
  for (const host::MappedFile& file : files.value()) {
    const size_t slash = file.path.rfind('/');
    const std::string base = file.path.substr(slash == std::string::npos ? 0 : slash + 1);
    if (!base.starts_with("libnccl.so") && !base.starts_with("librccl.so")) continue;
    const Result<LibraryFile> library = host::LookAtLibrary(tree, file.path);
    if (!library.ok()) continue;
    assumed->checked_for.library = library.value().library;
    assumed->checked_for.version = library.value().version;
    assumed->why = "the process has loaded " + file.path;
    return true;
  }
  return false;
}

// The library that a program would load on this host; `wanted` restricts the search.
void FromMachine(const RootFs& tree, const Environment& environment, bool given, Assumed* assumed) {
  std::vector<LibraryFile> files = host::FindLibraries(tree, environment);
  const std::vector<host::Torch> torches = host::FindTorch(tree, environment, files);
  size_t of_wanted = 0;
  for (const Library library : {Library::kNccl, Library::kRccl}) {
    if (given && library != assumed->checked_for.library) continue;
    const host::JobLibrary job = host::FindJobLibrary(tree, environment, library, torches, &files);
    const std::string& path = job.file;
    const LibraryFile* only = nullptr;
    size_t count = 0;
    for (const LibraryFile& file : files) {
      if (file.library != library) continue;
      ++count;
      if (path.empty() || file.path == path || file.real_path == path) only = &file;
    }
    if (given) of_wanted = count;
    if (only == nullptr || (path.empty() && count > 1)) continue;
    assumed->checked_for.library = library;
    assumed->checked_for.version = only->version;
    assumed->why = path.empty()  ? "the only one found is " + only->path
                   : job.by_name ? "the loader would load " + only->path
                                 : only->path + ": " + job.WhyText();
    return;
  }
  assumed->why =
      WhyNoVersion(given ? &assumed->checked_for.library : nullptr, of_wanted, files.size());
}

Result<Assumed> Assume(const EnvCheckOptions& options, const RootFs& tree,
                       const Environment& environment) {
  Assumed assumed;
  if (!options.library.empty()) {
    ASSIGN_OR_RETURN(const Library library, ParseNcclOrRccl(options.library));
    assumed.checked_for.library = library;
    assumed.why = "from --library";
  }
  if (!options.library_file.empty()) {
    std::error_code ignored;
    const std::string path = std::filesystem::absolute(options.library_file, ignored).string();
    ASSIGN_OR_RETURN(const LibraryFile file, host::LookAtLibrary(tree, path));
    if (!options.library.empty()) {
      RETURN_IF_ERROR(
          CheckLibraryFile(assumed.checked_for.library, file.library, options.library_file));
    }
    assumed.checked_for.library = file.library;
    assumed.checked_for.version = file.version;
    assumed.why = "as " + options.library_file + " identifies itself";
    return assumed;
  }
  if (!options.version.empty()) {
    ASSIGN_OR_RETURN(const int version, ParseWholeVersion(options.version));
    assumed.checked_for.version = version;
    assumed.why = "from --library-version";
    return assumed;
  }
  if (!options.file.empty()) return assumed;  // the file says more than this host
  if (options.pid != 0 && FromProcess(tree, options.pid, &assumed)) return assumed;
  FromMachine(tree, environment, !options.library.empty(), &assumed);
  return assumed;
}

// The variables to check, and their source.
struct GatheredVariables {
  std::vector<Assignment> assignments;
  std::vector<Finding> findings;
  std::string from;
  std::string form;  // "a shell script"; "" for environments
};

// The variables of a file. The library is the file's, not that of this host: it is what options
// say, or a guess by what the file names.
Result<GatheredVariables> FromFile(const EnvCheckOptions& options, Assumed* assumed) {
  GatheredVariables gathered;
  ASSIGN_OR_RETURN(const std::string text, ReadTextToCheck(options.file));
  gathered.from = options.file == "-" ? "standard input" : options.file;
  knobs::FileReading read = knobs::ReadVariables(text, gathered.from, assumed->checked_for);
  gathered.form = knobs::FormText(read.form);
  gathered.assignments = std::move(read.assignments);
  gathered.findings = std::move(read.findings);
  CheckedFor& checked_for = assumed->checked_for;
  checked_for.file = true;
  if (options.library.empty() && options.library_file.empty()) {
    checked_for.library = read.library;
    checked_for.either = read.either;
    checked_for.guessed = true;
    assumed->why = read.why + (assumed->why.empty() ? "" : "; the version " + assumed->why);
  }
  return gathered;
}

GatheredVariables FromSurroundings(const RootFs& tree, const Environment& environment,
                                   const CheckedFor& checked_for, const std::string& source) {
  GatheredVariables gathered;
  gathered.assignments = knobs::FromEnvironment(environment, source);
  const std::vector<Assignment> files =
      knobs::FromConfigFiles(tree, environment, &gathered.findings, checked_for);
  gathered.from = "the " + source;
  if (!files.empty()) gathered.from += " and the library's configuration files";
  gathered.assignments.insert(gathered.assignments.end(), files.begin(), files.end());
  return gathered;
}

std::string LibraryText(const Assumed& assumed) {
  const std::string title = assumed.checked_for.either
                                ? "NCCL or RCCL"
                                : std::string(LibraryTitle(assumed.checked_for.library));
  if (assumed.checked_for.version == 0) return title + ", version not known";
  std::string text = title + " " + LibraryVersionText(assumed.checked_for.version);
  const int newest = knobs::Catalogue::NewestKnown(assumed.checked_for.library);
  const int complete = knobs::Catalogue::NewestComplete(assumed.checked_for.library);
  if (assumed.checked_for.version > newest) {
    text += ", newer than the versions known here (" + LibraryVersionText(newest) + ")";
  } else if (assumed.checked_for.version > complete) {
    text += ", of which not all variables are known here (those up to " +
            LibraryVersionText(complete) + " are)";
  }
  return text;
}

// Without variables that are overridden.
size_t VariableCount(const GatheredVariables& gathered) {
  size_t count = 0;
  for (const Assignment& one : gathered.assignments) count += one.overridden ? 0 : 1;
  return count;
}

void PrintJson(const Assumed& assumed, const GatheredVariables& gathered) {
  nlohmann::ordered_json whole{{"library", LibraryName(assumed.checked_for.library)},
                               {"version", LibraryVersionText(assumed.checked_for.version)},
                               {"assumed_because", assumed.why},
                               {"from", gathered.from},
                               {"form", gathered.form},
                               {"variables", VariableCount(gathered)},
                               {"summary", FindingsSummary(gathered.findings)}};
  whole["findings"] = nlohmann::ordered_json::parse(FindingsJson(gathered.findings));
  PrintOut("{}\n", JsonText(whole));
}

Result<int> Check(const EnvCheckOptions& options) {
  const RootFs machine;
  MapEnvironment of_process({});
  const Environment* environment = &ProcessEnvironment();
  if (options.pid != 0) {
    ASSIGN_OR_RETURN(MapEnvironment read, host::EnvironmentOf(machine, options.pid));
    of_process = std::move(read);
    environment = &of_process;
  }
  ASSIGN_OR_RETURN(Assumed assumed, Assume(options, machine, *environment));
  GatheredVariables gathered;
  if (!options.file.empty()) {
    ASSIGN_OR_RETURN(gathered, FromFile(options, &assumed));
  } else {
    // Paths in a file may belong to another machine; check them only for this environment.
    assumed.checked_for.tree = &machine;
    const std::string source =
        options.pid == 0 ? "environment" : Format("environment of process {}", options.pid);
    gathered = FromSurroundings(machine, *environment, assumed.checked_for, source);
  }
  const CheckedFor& checked_for = assumed.checked_for;
  const std::vector<Finding> checked =
      knobs::CheckAssignments(gathered.assignments, checked_for, knobs::Catalogue::BuiltIn());
  gathered.findings.insert(gathered.findings.end(), checked.begin(), checked.end());
  const std::vector<Finding> chained =
      doctor::CheckSiteTuner(gathered.assignments, checked_for, *environment);
  gathered.findings.insert(gathered.findings.end(), chained.begin(), chained.end());
  const std::vector<Finding> profiler =
      doctor::CheckSiteProfiler(gathered.assignments, checked_for, *environment);
  gathered.findings.insert(gathered.findings.end(), profiler.begin(), profiler.end());
  SortBySeverity(&gathered.findings);
  if (options.json) {
    PrintJson(assumed, gathered);
    return ExitStatusOf(gathered.findings);
  }
  PrintOut("{} ({})\n{} from {}{}\n\n", LibraryText(assumed), assumed.why,
           Count(VariableCount(gathered), "variable"), gathered.from,
           gathered.form.empty() ? "" : ", " + gathered.form);
  const std::string text = FindingsText(gathered.findings, options.all);
  PrintOut("{}{}{}\n", text, text.empty() ? "" : "\n", FindingsSummary(gathered.findings));
  return ExitStatusOf(gathered.findings);
}

}  // namespace

void AddEnvCheck(CommandLine* env, CommandAction* run) {
  auto options = std::make_shared<EnvCheckOptions>();
  CommandLine* command = env->AddCommand(
      "check", "Find problems with environment variables: of this shell, a file or a process");
  Option* file =
      command
          ->AddOption(
              "--file", options->file,
              "Script, Dockerfile, YAML, JSON, Python, nccl.conf or output of env to check; "
              "- for standard input")
          ->TypeName("FILE");
  command->AddOption("--pid", options->pid, "Process whose initial environment to check")
      ->TypeName("PID")
      ->Check(Positive())
      ->Excludes(file);
  command->AddOption("--library", options->library, "Library to check for: nccl or rccl")
      ->TypeName("NAME")
      ->Words(NcclOrRccl());
  Option* version = command
                        ->AddOption("--library-version", options->version,
                                    "Version of the library, such as 2.28.9")
                        ->TypeName("VERSION");
  command
      ->AddOption("--library-file", options->library_file,
                  "Library file to check for, such as /usr/lib/libnccl.so.2")
      ->TypeName("FILE")
      ->Excludes(version);
  command->Heading("Output");
  command->AddFlag("--all", options->all, "Also show variables without problems");
  command->AddJson(options->json);
  command->Example("diapason env check", "Check the environment of this shell");
  command->Example("diapason env check --file job.sh --library-version 2.28.9");
  command->Example("diapason env check --pid 4711",
                   "Check a running rank, for the library that it has loaded");
  command->Judges();
  command->SeeAlso({"knobs", "doctor"});
  command->Callback([options, run] {
    const Status right = CheckLibraryOptions(options->library, options->version);
    if (!right.ok()) throw UsageError{"", right.message()};
    *run = [options] { return Check(*options); };
  });
}

}  // namespace diapason::cli
