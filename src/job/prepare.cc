#include "job/prepare.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>

#include "agree/job.h"
#include "base/file.h"
#include "base/own_files.h"
#include "base/root_fs.h"
#include "base/settings.h"
#include "base/text.h"
#include "doctor/this_machine.h"
#include "domain/plugin_names.h"
#include "job/checks.h"
#include "job/mpi_program.h"
#include "job/store_choice.h"
#include "policy/inline.h"
#include "policy/openmpi_rules.h"
#include "policy/parse.h"
#include "policy/source.h"

namespace diapason::job {
namespace {

constexpr size_t kLongestPath = 254;
constexpr int kFirstWithRasControl = 23100;
// Of a journal that is only read by us, at the end of the run.
constexpr char kJournalLimit[] = "32MiB";
constexpr char kRecorder[] = "libdiapason-mpi-recorder.so";

std::string Absolute(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::absolute(path, ignored).lexically_normal();
  return whole.empty() ? path : whole.string();
}

// NCCL's, unless there is only an RCCL.
host::JobLibrary FindLibrary(const Environment& environment) {
  const RootFs tree;
  std::vector<host::LibraryFile> files = host::FindLibraries(tree, environment);
  const std::vector<host::Torch> torches = host::FindTorch(tree, environment, files);
  host::JobLibrary nccl = host::FindJobLibrary(tree, environment, Library::kNccl, torches, &files);
  if (!nccl.file.empty()) return nccl;
  host::JobLibrary rccl = host::FindJobLibrary(tree, environment, Library::kRccl, torches, &files);
  return rccl.file.empty() ? nccl : rccl;
}

class Preparer {
 public:
  Preparer(const JobRequest& request, const Environment& environment)
      : request_(request), environment_(environment) {}

  Result<PreparedJob> Prepare() {
    ReadOptions options;
    options.environment = &environment_;
    job_.mode = request_.mode;
    job_.command = ReadCommand(request_.command, options);
    job_.mpi = request_.kind == JobKind::kMpi ||
               (request_.kind == JobKind::kDetect && IsMpiProgram(job_.command, environment_));
    if (job_.mpi) return PrepareMpi();
    job_.library = FindLibrary(environment_);
    RETURN_IF_ERROR(SetPlugin());
    Set("DIAPASON_MODE", std::string(JobModeName(request_.mode)));
    RETURN_IF_ERROR(SetPolicy());
    if (request_.mode == JobMode::kLearn) RETURN_IF_ERROR(SetLearning());
    if (AgreesOnCalls(request_.mode)) TurnOffRas();
    RETURN_IF_ERROR(SetStore());
    SetJobName();
    RETURN_IF_ERROR(SetJournals());
    AddRequested();
    PassOnSettings();
    std::vector<RankPath> paths = {{job_.plugin, false}, {job_.journal_dir, true}};
    if (!job_.learned.empty()) {
      paths.push_back({std::filesystem::path(job_.learned).parent_path().string(), true});
    }
    job_.handed = HandOver(job_.command, job_.variables, paths, environment_);
    job_.findings = CheckJob(job_, environment_);
    for (Finding& one : replaced_) job_.findings.push_back(std::move(one));
    SortBySeverity(&job_.findings);
    return std::move(job_);
  }

 private:
  std::string Given(const char* name) const { return environment_.Get(name).value_or(""); }

  // A program without a plugin: the recorder is preloaded, and a policy becomes a rules file.
  Result<PreparedJob> PrepareMpi() {
    if (AgreesOnCalls(request_.mode)) {
      return Invalid(
          "this is an MPI program without NCCL or RCCL, in which configurations cannot be changed "
          "while it runs: `diapason tune -- COMMAND` tries them by launches; --library nccl if it "
          "is none");
    }
    const std::string recorder = FindBesideUs(kRecorder);
    if (recorder.empty()) {
      return NotFound(
          std::string("the recorder ") + kRecorder +
          " is not beside this program; DIAPASON_LIB_DIR names the folder that it is in");
    }
    job_.plugin = Absolute(recorder);
    const std::string others = Given("LD_PRELOAD");
    Set("LD_PRELOAD", job_.plugin + (others.empty() ? "" : ":" + others));
    RETURN_IF_ERROR(SetFolder());
    Set("DIAPASON_MPI_RECORD", job_.journal_dir + "/" + job_.journal_stem + "%h.%p.mpirec");
    RETURN_IF_ERROR(SetRules());
    AddRequested();
    job_.handed = HandOver(job_.command, job_.variables,
                           {{job_.plugin, false}, {job_.journal_dir, true}}, environment_);
    job_.findings = job_.handed.findings;
    if (job_.policy.has_value()) {
      for (Finding& one : CheckOwnRules(job_.command, environment_)) {
        job_.findings.push_back(std::move(one));
      }
    }
    SortBySeverity(&job_.findings);
    return std::move(job_);
  }

  // A file, since Open MPI reads no other form; beside the recordings, where all hosts see it.
  Status SetRules() {
    if (request_.policy.empty()) return {};
    policy::ParseOptions options;
    options.library = Library::kOpenMpi;
    ASSIGN_OR_RETURN(const std::string text, ReadFile(request_.policy, policy::kMostBytes));
    ASSIGN_OR_RETURN(job_.policy, policy::ParseStrictly(text, request_.policy, options));
    job_.policy_name = Absolute(request_.policy);
    job_.evidence = EvidenceIn(text);
    ASSIGN_OR_RETURN(const std::string rules, policy::OpenMpiRulesText(*job_.policy, nullptr));
    const std::string path = job_.journal_dir + "/rules-" + job_.journal_stem + "conf";
    if (!request_.dry_run) RETURN_IF_ERROR(WriteFileAtomically(path, rules));
    Set(kUseRulesVariable, "1");
    Set(kRulesFileVariable, path);
    return {};
  }
  void Set(const std::string& name, const std::string& value) {
    job_.variables.push_back({name, value});
  }

  void AddRequested() {
    for (const RankVariable& one : request_.variables) {
      std::erase_if(job_.variables, [&](const RankVariable& set) { return set.name == one.name; });
      job_.variables.push_back(one);
    }
  }

  // Our plugin as both halves; one that was named by the user is asked by ours.
  Status SetPlugin() {
    const doctor::PluginFile plugin = doctor::FindOwnPlugin();
    if (plugin.path.empty()) {
      return NotFound(
          "the plugin libnccl-tuner-diapason.so is not beside this program; DIAPASON_LIB_DIR names "
          "the folder that it is in");
    }
    if (!plugin.trouble.empty()) return Unavailable("the plugin does not load: " + plugin.trouble);
    job_.plugin = Absolute(plugin.path);
    if (job_.plugin.size() > kLongestPath) {
      return Invalid(Format("the library reads at most {} characters of a plugin's path: move '{}'",
                            kLongestPath, job_.plugin));
    }
    const struct {
      const char* name;
      const char* chain;
    } halves[] = {{"NCCL_TUNER_PLUGIN", "DIAPASON_CHAIN"},
                  {"NCCL_PROFILER_PLUGIN", "DIAPASON_PROFILER_CHAIN"}};
    for (const auto& [name, chain] : halves) {
      const std::string value = Given(name);
      Set(name, job_.plugin);
      if (value.empty() || NamesDiapason(value) || value == job_.plugin) continue;
      const bool chains = Given(chain).empty();
      if (chains) Set(chain, value);
      replaced_.push_back({"job.replaced",
                           Severity::kNote,
                           std::string(name) + " names another plugin: it is replaced by ours" +
                               (chains && !NamesNoPlugin(value) ? ", which asks it first" : ""),
                           {std::string(name) + "=" + value},
                           ""});
    }
    return {};
  }

  // Inline, so that all ranks have the same whatever files their hosts have.
  Status SetPolicy() {
    std::map<std::string, std::string> names;
    for (const std::string& name : environment_.Names()) names[name] = Given(name.c_str());
    if (!request_.policy.empty()) {
      names["DIAPASON_POLICY"] = Absolute(request_.policy);
      names.erase("DIAPASON_POLICY_INLINE");
      if (!FileExists(request_.policy)) {
        return NotFound("there is no policy '" + request_.policy +
                        "'; `diapason tune` writes one, `--learn` needs none");
      }
    }
    // What was learned is read by rank 0 itself, and merged with what it learns.
    if (request_.mode == JobMode::kLearn) names.erase("DIAPASON_LEARNED");
    const policy::Source source = policy::FindSource(Settings::Read(MapEnvironment(names)));
    if (source.kind == policy::Source::Kind::kNone) return {};
    policy::ParseOptions options;
    options.library = job_.library.library;
    options.check_rows = false;
    Result<policy::Policy> policy = policy::LoadPolicy(source, options);
    if (!policy.ok() && job_.library.file.empty() && options.library == Library::kNccl) {
      // Which of the two libraries the job will load is not known.
      options.library = Library::kRccl;
      Result<policy::Policy> other = policy::LoadPolicy(source, options);
      if (other.ok()) policy = std::move(other);
    }
    if (!policy.ok()) return policy.status();
    job_.policy_name = source.name;
    if (source.kind == policy::Source::Kind::kFile) {
      ASSIGN_OR_RETURN(const std::string text, ReadFile(source.name, policy::kMostBytes));
      job_.evidence = EvidenceIn(text);
    }
    const std::string word = policy::EncodeInline(policy.value());
    if (word.size() <= policy::kLongestInline) {
      Set("DIAPASON_POLICY_INLINE", word);
    } else {
      Set("DIAPASON_POLICY", Absolute(source.name));
      if (!Given("DIAPASON_POLICY_INLINE").empty()) Set("DIAPASON_POLICY_INLINE", "");
      replaced_.push_back(
          {"job.large-policy",
           Severity::kWarning,
           "the policy is too large for a variable: every host has to have the file",
           {source.name + ": " + Count(policy.value().rules.size(), "row")},
           "On several hosts, put it on a file system that all of them share"});
    }
    job_.policy = std::move(policy).value();
    return {};
  }

  Status SetLearning() {
    const std::string named =
        request_.learned.empty() ? Given("DIAPASON_LEARNED") : request_.learned;
    job_.learned = Absolute(named.empty() ? kLearnedFile : named);
    const std::string folder = std::filesystem::path(job_.learned).parent_path().string();
    if (::access(folder.c_str(), W_OK) != 0) {
      return IoError("what is learned cannot be kept in '" + job_.learned +
                     "': " + ErrnoText(errno) + "; name another file with --learned");
    }
    if (FileExists(job_.learned)) {
      ASSIGN_OR_RETURN(job_.learned_before, ReadFile(job_.learned, policy::kMostBytes));
    }
    Set("DIAPASON_LEARNED", job_.learned);
    return {};
  }

  // From 2.31 on ranks agree on no call with it; before, it has no part in collectives.
  void TurnOffRas() {
    const bool needed = job_.library.version == 0 || job_.library.version >= kFirstWithRasControl;
    if (needed && Given("NCCL_RAS_ENABLE").empty()) Set("NCCL_RAS_ENABLE", "0");
  }

  // Settings that the user has exported reach the ranks as ours do, or some hosts would not have
  // them. Those behind the journal's are not the plugin's.
  void PassOnSettings() {
    for (const SettingInfo& info : SettingTable()) {
      if (info.id > Setting::kJournalTimes) continue;
      for (const std::string& name : {std::string(info.name), std::string(info.other_name)}) {
        const bool ours = std::any_of(job_.variables.begin(), job_.variables.end(),
                                      [&](const RankVariable& one) { return one.name == name; });
        if (!name.empty() && !ours && !Given(name.c_str()).empty()) Set(name, Given(name.c_str()));
      }
    }
  }

  Status SetStore() {
    const StoreRequest wanted{request_.store, AgreesOnCalls(request_.mode), request_.dry_run};
    ASSIGN_OR_RETURN(StoreChoice store, ChooseStore(job_.command, wanted, environment_));
    job_.served_store = std::move(store.served);
    if (!store.where.empty()) Set("DIAPASON_STORE", store.where);
    if (!store.where.starts_with("tcp://")) return {};
    if (!store.secret.empty()) {
      Set("DIAPASON_SECRET", store.secret);
      return {};
    }
    for (const char* name : {"DIAPASON_SECRET_FILE", "DIAPASON_SECRET"}) {
      if (!Given(name).empty()) Set(name, Given(name));
    }
    return {};
  }

  // Where no launcher gives the ranks a common name.
  void SetJobName() {
    if (!request_.job.empty()) return Set("DIAPASON_JOB", request_.job);
    const bool agrees =
        AgreesOnCalls(request_.mode) || !request_.store.empty() || !Given("DIAPASON_STORE").empty();
    if (!agrees || job_.command.Starting().launcher != Launcher::kNone ||
        agree::JobIdentity(environment_) != agree::kNoJob) {
      return;
    }
    Set("DIAPASON_JOB", Format("run-{}-{}", ::getpid(), static_cast<int64_t>(std::time(nullptr))));
  }

  Status SetJournals() {
    RETURN_IF_ERROR(SetFolder());
    if (own_limit_ && Given("DIAPASON_JOURNAL_LIMIT").empty()) {
      Set("DIAPASON_JOURNAL_LIMIT", kJournalLimit);
    }
    Set("DIAPASON_JOURNAL", job_.journal_dir + "/" + job_.journal_stem + "%h.%p.jsonl");
    return {};
  }

  // Where the ranks write, and how the files of this run begin.
  Status SetFolder() {
    // A file that the user has named says where journals are wanted, not how those of a run are
    // told apart.
    const std::string named = Given("DIAPASON_JOURNAL");
    const std::string wanted = !request_.journal_dir.empty() ? Absolute(request_.journal_dir)
                               : !named.empty()
                                   ? std::filesystem::path(Absolute(named)).parent_path().string()
                                   : "";
    // What the other hosts write is seen only in a folder that they share; the present one often
    // is.
    const bool several = job_.command.Starting().hosts > 1;
    const std::string place = several ? std::filesystem::current_path().string() : "";
    if (!wanted.empty()) {
      std::error_code error;
      if (!request_.dry_run) std::filesystem::create_directories(wanted, error);
      if (error) return IoError("cannot create the folder '" + wanted + "': " + error.message());
      if (!request_.dry_run && ::access(wanted.c_str(), W_OK | X_OK) != 0) {
        return IoError("journals cannot be written to '" + wanted + "': " + ErrnoText(errno));
      }
      job_.journal_dir = wanted;
    } else if (request_.dry_run) {
      job_.journal_dir = (several ? place : "/tmp") + "/diapason-XXXXXX";
    } else {
      job_.own_folder = std::make_shared<TemporaryFolder>(place);
      job_.journal_dir = job_.own_folder->path();
      if (job_.journal_dir.empty()) {
        return IoError("there is no place for journals: " + ErrnoText(errno) +
                       "; name a folder with --journal-dir");
      }
    }
    own_limit_ = wanted.empty();
    std::tm time{};
    const std::time_t now = std::time(nullptr);
    ::gmtime_r(&now, &time);
    char stamp[32];
    (void)std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &time);
    job_.journal_stem = Format("run-{}-{}.", stamp, ::getpid());
    return {};
  }

  const JobRequest& request_;
  const Environment& environment_;
  PreparedJob job_;
  bool own_limit_ = false;  // the journals are read by us alone
  std::vector<Finding> replaced_;
};

}  // namespace

Result<PreparedJob> Prepare(const JobRequest& request, const Environment& environment) {
  return Preparer(request, environment).Prepare();
}

}  // namespace diapason::job
