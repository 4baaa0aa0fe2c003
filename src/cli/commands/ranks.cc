#include "cli/commands/ranks.h"

#include <cstdlib>
#include <filesystem>

#include "base/environment.h"
#include "base/text.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "comm/backend_facts.h"
#include "comm/backends/sim/cluster.h"
#include "comm/launch_info.h"
#include "domain/library_version.h"
#include "host/paths.h"
#include "launch/local_launch.h"

namespace diapason::cli {

ValueRule ClusterName() {
  const auto wrong = [](std::string& text) -> std::string {
    if (text.find_first_of("/.") != std::string::npos) return "";
    const Result<std::string_view> shipped = comm::sim::ShippedText(text);
    return shipped.ok() ? "" : shipped.status().message();
  };
  return {wrong, "", comm::sim::ClusterNames()};
}

void AddRankOptions(CommandLine* command, RankOptions* options, bool all) {
  std::vector<std::string> backends = comm::BackendNames();
  backends.insert(backends.begin(), "auto");
  if (all) backends.emplace_back("all");
  command->Heading("Ranks");
  command
      ->AddOption(
          "-g,--ranks", options->ranks,
          "Number of ranks to start on this host; ignored if a launcher started this command")
      ->Check(Range(1, launch::kMostLocalRanks))
      ->Default("one per GPU, else 2; 4 with --backend sim");
  command->AddOption("--backend", options->backend, "Backend to run on: " + Join(backends, ", "))
      ->TypeName("NAME")
      ->Check(OneOf(backends))
      ->ShowDefault();
  command
      ->AddOption("--cluster", options->cluster, "Simulated cluster to run on, for --backend sim")
      ->TypeName("NAME")
      ->Check(ClusterName());
  Option* limit = command->AddTime("--limit", options->limit,
                                   "Time after which a wait counts as a hang", 0.1, 604800.0);
  if (options->limit <= 0) limit->Default("DIAPASON_TIMEOUT, else 60s");
  command
      ->AddOption("--library-file", options->library_file,
                  "File of NCCL or RCCL to run on, such as /opt/nccl/lib/libnccl.so.2")
      ->TypeName("FILE")
      ->Default("PyTorch's where PyTorch is installed, else the loader's");
  command->AddOption("--seed", options->seed, "Seed for the random number generator")
      ->ShowDefault();
}

namespace {

// Whether a launcher has made this process a rank other than 0.
bool IsAnotherRank() {
  if (!IsLaunched()) return false;
  const Result<comm::LaunchInfo> launch = comm::FindLaunch({}, ProcessEnvironment());
  return launch.ok() && launch.value().rank != 0;
}

// Whether ranks of this backend open this library.
bool Opens(const std::string& backend, Library library) {
  const comm::BackendFacts& facts = comm::FactsOfBackend(comm::BackendOf(library));
  if (backend != "auto" && backend != "all") return backend == facts.name;
  return facts.gpus != nullptr && facts.gpus().ok();
}

Result<host::JobLibrary> UseNamedLibrary(const RankOptions& options, const std::string& backend) {
  std::error_code ignored;
  const std::string path = std::filesystem::absolute(options.library_file, ignored).string();
  const RootFs tree;
  const Result<host::LibraryFile> file = host::LookAtLibrary(tree, path);
  if (!file.ok()) return file.status().WithContext("--library-file");
  host::JobLibrary job;
  job.library = file.value().library;
  const comm::BackendFacts& facts = comm::FactsOfBackend(backend);
  if (facts.library != job.library && backend != "auto" && backend != "all") {
    return Invalid("--library-file names a file of " + std::string(LibraryTitle(job.library)) +
                   ", which the backend " + backend + " does not use");
  }
  const std::string preloaded =
      host::LoadedBy("LD_PRELOAD", host::FindLibraries(tree, ProcessEnvironment()), job.library,
                     tree, ProcessEnvironment());
  if (!preloaded.empty() && host::RealPath(tree, preloaded) != file.value().real_path) {
    return Invalid("--library-file cannot replace " + preloaded + ", which LD_PRELOAD has loaded");
  }
  job.file = path;
  job.version = file.value().version;
  job.because = "--library-file names it";
  return job;
}

}  // namespace

Result<host::JobLibrary> UseJobLibrary(const RankOptions& options) {
  const std::string backend = measure::BackendOf(options);
  host::JobLibrary job;
  if (!options.library_file.empty()) {
    ASSIGN_OR_RETURN(job, UseNamedLibrary(options, backend));
  } else {
    const RootFs tree;
    const Environment& environment = ProcessEnvironment();
    for (const Library library : {Library::kNccl, Library::kRccl}) {
      if (!job.file.empty() || !Opens(backend, library)) continue;
      std::vector<host::LibraryFile> files = host::FindLibraries(tree, environment);
      const std::vector<host::Torch> torches = host::FindTorch(tree, environment, files);
      job = host::FindJobLibrary(tree, environment, library, torches, &files);
    }
  }
  // The loader's choice is left to the loader: ranks on other hosts may have it elsewhere.
  if (!job.file.empty() && !job.by_name) {
    setenv(host::LibraryFileSetting(job.library), job.file.c_str(), 1);
  }
  return job;
}

void SayJobLibrary(const host::JobLibrary& job) {
  if (job.file.empty() || job.by_name || IsAnotherRank()) return;
  Progress(std::string(LibraryTitle(job.library)) + " " + LibraryVersionText(job.version) + ", " +
           job.file + ": " + job.WhyText());
}

namespace {

// Only rank 0 prints JSON.
void ExpectNoJsonOfOthers() {
  if (IsAnotherRank()) ExpectJson(false);
}

}  // namespace

Result<int> OnEveryRank(const RankOptions& options, bool choose, const RankBody& body) {
  ExpectNoJsonOfOthers();
  return measure::RunOnEveryRank(options, choose, body);
}

Result<int> MeasureWithRanks(
    const RankOptions& options, bool choose,
    const std::function<Result<int>(measure::RankMeasurer* measurer)>& body) {
  ExpectNoJsonOfOthers();
  ASSIGN_OR_RETURN(const host::JobLibrary job, UseJobLibrary(options));
  SayJobLibrary(job);
  return measure::LeadRanks(options, choose, body);
}

}  // namespace diapason::cli
