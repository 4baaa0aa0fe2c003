#include "job/prepare.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>

#include "agree/job.h"
#include "base/file.h"
#include "base/root_fs.h"
#include "base/settings.h"
#include "base/text.h"
#include "doctor/this_machine.h"
#include "domain/plugin_names.h"
#include "job/checks.h"
#include "policy/inline.h"
#include "policy/source.h"

namespace diapason::job {
namespace {

constexpr size_t kLongestPath = 254;
constexpr int kFirstWithRasControl = 23100;
// Of a journal that is only read by us, at the end of the run.
constexpr char kJournalLimit[] = "32MiB";

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
    job_.library = FindLibrary(environment_);
    RETURN_IF_ERROR(SetPlugin());
    Set("DIAPASON_MODE", std::string(JobModeName(request_.mode)));
    RETURN_IF_ERROR(SetPolicy());
    if (request_.mode == JobMode::kLearn) RETURN_IF_ERROR(SetLearning());
    if (AgreesOnCalls(request_.mode)) TurnOffRas();
    if (!request_.store.empty()) Set("DIAPASON_STORE", request_.store);
    SetJobName();
    RETURN_IF_ERROR(SetJournals());
    for (const RankVariable& one : request_.variables) {
      std::erase_if(job_.variables, [&](const RankVariable& set) { return set.name == one.name; });
      job_.variables.push_back(one);
    }
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
  void Set(const std::string& name, const std::string& value) {
    job_.variables.push_back({name, value});
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
    if (wanted.empty() && Given("DIAPASON_JOURNAL_LIMIT").empty()) {
      Set("DIAPASON_JOURNAL_LIMIT", kJournalLimit);
    }
    std::tm time{};
    const std::time_t now = std::time(nullptr);
    ::gmtime_r(&now, &time);
    char stamp[32];
    (void)std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &time);
    job_.journal_stem = Format("run-{}-{}.", stamp, ::getpid());
    Set("DIAPASON_JOURNAL", job_.journal_dir + "/" + job_.journal_stem + "%h.%p.jsonl");
    return {};
  }

  const JobRequest& request_;
  const Environment& environment_;
  PreparedJob job_;
  std::vector<Finding> replaced_;
};

}  // namespace

std::string_view JobModeName(JobMode mode) {
  switch (mode) {
    case JobMode::kLearn:
      return "learn";
    case JobMode::kCompare:
      return "compare";
    case JobMode::kObserve:
      return "observe";
    case JobMode::kTune:
      return "tune";
    case JobMode::kStatic:
      break;
  }
  return "static";
}

std::vector<std::string> PreparedJob::Journals() const {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(journal_dir, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(journal_stem)) files.push_back(at->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string PreparedJob::Variable(const std::string& name) const {
  for (const RankVariable& one : variables) {
    if (one.name == name) return one.value;
  }
  return "";
}

std::map<int, std::string> EvidenceIn(const std::string& text) {
  std::map<int, std::string> evidence;
  std::string remark;
  int number = 0;
  for (const std::string_view line : Split(text, '\n')) {
    ++number;
    const std::string_view trimmed = Trim(line);
    if (trimmed.empty()) continue;
    if (trimmed[0] != '#') {
      if (!remark.empty()) evidence[number] = remark;
      remark.clear();
      continue;
    }
    const std::string_view said = Trim(trimmed.substr(1));
    if (said.starts_with("verified:") || said.starts_with("learned:")) remark = std::string(said);
  }
  return evidence;
}

Result<PreparedJob> Prepare(const JobRequest& request, const Environment& environment) {
  return Preparer(request, environment).Prepare();
}

}  // namespace diapason::job
