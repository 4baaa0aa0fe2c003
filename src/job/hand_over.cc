#include "job/hand_over.h"

#include <algorithm>
#include <map>

#include "base/secrets.h"
#include "base/text.h"
#include "job/option_shapes.h"

namespace diapason::job {
namespace {

// Words that are put behind a word, or take its place.
struct Edit {
  size_t word = 0;
  bool replaces = false;
  std::vector<std::string> words;
};

std::string ParentFolder(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

class Writer {
 public:
  Writer(const JobCommand& command, const std::vector<RankVariable>& variables,
         const std::vector<RankPath>& paths, const Environment& environment)
      : command_(command), variables_(variables), paths_(paths), environment_(environment) {}

  void Write() {
    CheckVariables();
    if (!command_.inner.empty()) WriteText();
    if (command_.clears || RemovesOurs()) SetBehindPrefix();
    switch (command_.launcher) {
      case Launcher::kOpenMpi:
        way = "mpirun -x";
        WriteOpenMpi();
        break;
      case Launcher::kHydra:
        way = "mpiexec -genv";
        for (const RankVariable& one : variables_) {
          if (!IsSecret(one)) Insert(command_.first.begin, {"-genv", one.name, one.value});
        }
        break;
      case Launcher::kSrun:
        way = "srun --export";
        WriteSrun();
        break;
      case Launcher::kDeepspeed:
        CheckDeepspeed();
        break;
      case Launcher::kContainer:
        way = command_.first.name + " -e";
        WriteContainer();
        break;
      case Launcher::kSsh:
        Add("job.not-handed-over", Severity::kError,
            command_.first.name + " does not pass variables on to the other host",
            "Run `diapason run` on that host: " + command_.first.name +
                " HOST diapason run ... -- COMMAND");
        break;
      case Launcher::kBatch:
        Add("job.not-handed-over", Severity::kError,
            command_.first.name + " returns before the job runs, so that its end is not seen here",
            "Put `diapason run ... --` before srun, mpirun or torchrun in the batch script");
        break;
      case Launcher::kNone:
      case Launcher::kTorchrun:
      case Launcher::kAccelerate:
      case Launcher::kDiapason:
        break;
    }
    if (!command_.hidden.empty()) {
      Add("job.unsure", Severity::kNote,
          "'" + command_.hidden + "' may be started by " + command_.first.name +
              ", whose words are not known here: the variables are in the environment that it gets",
          "On several hosts, put `diapason run ... --` directly before " + command_.hidden);
    }
  }

  // The words with the edits.
  std::vector<std::string> Words() const {
    std::vector<std::string> words;
    for (size_t i = 0; i < command_.words.size(); ++i) {
      bool kept = true;
      for (const Edit& edit : edits_) kept = kept && !(edit.replaces && edit.word == i);
      if (kept) words.push_back(command_.words[i]);
      for (const Edit& edit : edits_) {
        if (edit.word == i) words.insert(words.end(), edit.words.begin(), edit.words.end());
      }
    }
    return words;
  }

  // The same in the text of a shell, where the words stand at `begins` to `ends`.
  void EditText(const InnerCommand& inner,
                std::map<std::pair<size_t, size_t>, std::string>* edits) {
    for (const Edit& edit : edits_) {
      std::string added;
      for (const std::string& word : edit.words) added += " " + ShellWord(word);
      const size_t end = inner.ends[edit.word];
      std::string& text = (*edits)[{edit.replaces ? inner.begins[edit.word] : end, end}];
      text += edit.replaces ? added.substr(1) : added;
    }
  }

  std::string way = "the inherited environment";
  process::EnvironmentChanges changed;  // beside the variables
  std::vector<Finding> findings;

 private:
  // The commands in the text of a shell.
  void WriteText() {
    std::map<std::pair<size_t, size_t>, std::string> edits;
    for (const InnerCommand& inner : command_.inner) {
      Writer part(inner.command, variables_, paths_, environment_);
      part.Write();
      part.EditText(inner, &edits);
      if (inner.command.Starting().launcher != Launcher::kNone) way = part.way;
      findings.insert(findings.end(), part.findings.begin(), part.findings.end());
      changed.merge(part.changed);
    }
    std::string text = command_.words[command_.text];
    for (auto edit = edits.rbegin(); edit != edits.rend(); ++edit) {
      text.replace(edit->first.first, edit->first.second - edit->first.first, edit->second);
    }
    Replace(command_.text, text);
  }

  void Insert(size_t behind, std::vector<std::string> words) {
    edits_.push_back({behind, false, std::move(words)});
  }
  void Replace(size_t word, std::string with) { edits_.push_back({word, true, {std::move(with)}}); }
  void Add(const char* id, Severity severity, std::string title, std::string action) {
    findings.push_back({id,
                        severity,
                        std::move(title),
                        {Join(command_.words, " ").substr(0, 200)},
                        std::move(action)});
  }

  // A password is never put on a command line, which every user can read.
  bool IsSecret(const RankVariable& one) {
    if (MaskSecrets(one.name, one.value) == one.value) return false;
    Add("job.secret", Severity::kWarning,
        "the password in " + one.name +
            " is not put on a command line: it reaches the ranks only "
            "where they inherit it",
        one.name == "DIAPASON_SECRET" ? "Use DIAPASON_SECRET_FILE, a file that every host has"
                                      : "Use ?password-file=/path in " + one.name);
    return true;
  }

  const RankVariable* Find(const std::string& name) const {
    for (const RankVariable& one : variables_) {
      if (one.name == name) return &one;
    }
    return nullptr;
  }

  void CheckVariables() {
    for (const CommandVariable& one : command_.variables) {
      const RankVariable* ours = Find(one.name);
      if (ours == nullptr || one.removed || ours->value == one.value) continue;
      Add("job.overridden", Severity::kError,
          "the command sets " + one.name + " itself, and its value would win over ours",
          "Remove " + one.name + "=... from the command");
    }
  }

  bool RemovesOurs() const {
    return std::any_of(
        command_.variables.begin(), command_.variables.end(),
        [this](const CommandVariable& one) { return one.removed && Find(one.name) != nullptr; });
  }

  // env and sudo take assignments as their last words.
  void SetBehindPrefix() {
    for (const CommandPart& prefix : command_.prefixes) {
      if (prefix.name != "env" && prefix.name != "sudo" && prefix.name != "doas") continue;
      std::vector<std::string> words;
      for (const RankVariable& one : variables_) {
        if (!IsSecret(one)) words.push_back(one.name + "=" + one.value);
      }
      Insert(prefix.end - 1, std::move(words));
      if (prefix.name == "env") continue;
      Add("job.unsure", Severity::kWarning,
          prefix.name + " passes variables on only where its rules allow it",
          "Put `" + prefix.name + "` before `diapason run`");
    }
  }

  // The other way to name variables, which Open MPI refuses beside -x. True if it is in use.
  bool AddToEnvList() {
    static constexpr char kParameter[] = "mca_base_env_list";
    const ReadWords words =
        ReadOptionWords(command_.words, command_.first.begin + 1, OpenMpiShape());
    for (const ReadOption& option : words.options) {
      if (option.values.size() != 2 || option.values[0] != kParameter) continue;
      way = "mpirun --mca mca_base_env_list";
      Replace(option.word + 2, option.values[1] + ";" + Names("", ";"));
      return true;
    }
    const std::string variable = std::string("OMPI_MCA_") + kParameter;
    const std::string list = environment_.Get(variable).value_or("");
    if (list.empty()) return false;
    way = variable;
    changed[variable] = list + ";" + Names("", ";");
    return true;
  }

  // Open MPI reads the options of each program between ":" by themselves.
  void WriteOpenMpi() {
    if (AddToEnvList()) return;
    std::vector<size_t> places = {command_.first.begin};
    for (size_t i = command_.first.end; i < command_.words.size(); ++i) {
      if (command_.words[i] == ":") places.push_back(i);
    }
    for (const size_t place : places) {
      const size_t end =
          std::min(static_cast<size_t>(
                       std::find(command_.words.begin() + static_cast<std::ptrdiff_t>(place) + 1,
                                 command_.words.end(), ":") -
                       command_.words.begin()),
                   command_.words.size());
      for (const RankVariable& one : variables_) {
        if (!Exports(place + 1, end, one.name)) Insert(place, {"-x", one.name});
      }
    }
  }

  // Whether `-x NAME` is there already.
  bool Exports(size_t from, size_t to, const std::string& name) const {
    const ReadWords words = ReadOptionWords(command_.words, from, OpenMpiShape());
    return std::any_of(words.options.begin(), words.options.end(), [&](const ReadOption& option) {
      return option.name == "x" && option.word < to && !option.values.empty() &&
             (option.values[0] == name || option.values[0].starts_with(name + "="));
    });
  }

  std::string Names(const std::string& listed, std::string_view separator = ",") const {
    std::vector<std::string> names;
    const std::vector<std::string_view> known = Split(listed, ',');
    for (const RankVariable& one : variables_) {
      if (std::find(known.begin(), known.end(), one.name) == known.end()) names.push_back(one.name);
    }
    return Join(names, separator);
  }

  // `--name=value` or `--name value`, of which the value is replaced.
  void ReplaceValue(const ReadOption& option, const std::string& value) {
    if (option.joined) {
      Replace(option.word, "--" + option.name + "=" + value);
    } else {
      Replace(option.word + 1, value);
    }
  }

  // What --export lists, with our names; "" if nothing has to be changed.
  std::string ExportList(const std::string& given) const {
    if (given.empty()) return "";
    std::vector<std::string> kept;
    for (const std::string_view one : Split(given, ',')) {
      if (one == "ALL") return "";
      if (one != "NONE" && one != "NIL") kept.emplace_back(one);
    }
    const std::string names = Names(given);
    if (!names.empty()) kept.push_back(names);
    return Join(kept, ",");
  }

  void WriteSrun() {
    const ReadWords words = ReadOptionWords(command_.words, command_.first.begin + 1, SrunShape());
    const ReadOption* exported = nullptr;
    const ReadOption* container_env = nullptr;
    const ReadOption* mounts = nullptr;
    bool container = false;
    for (const ReadOption& option : words.options) {
      container = container || option.name == "container-image" || option.name == "container-name";
      if (option.values.empty()) continue;
      if (option.name == "export") exported = &option;
      if (option.name == "container-env") container_env = &option;
      if (option.name == "container-mounts") mounts = &option;
    }
    const std::string by_variable = environment_.Get("SLURM_EXPORT_ENV").value_or("");
    const std::string list = ExportList(exported != nullptr ? exported->values[0] : by_variable);
    if (!list.empty()) {
      if (exported != nullptr) {
        ReplaceValue(*exported, list);
      } else {
        Insert(command_.first.begin, {"--export=" + list});
      }
      Add("job.export", Severity::kNote,
          std::string(exported != nullptr ? "--export" : "SLURM_EXPORT_ENV") +
              " keeps our variables from the tasks: they are added to its list",
          "");
    }
    if (!container) return;
    way = "srun --export and --container-env";
    // A variable of the image wins over an exported one that is not named.
    const std::string before = container_env != nullptr ? container_env->values[0] : "";
    const std::string names = Names(before);
    if (container_env != nullptr && !names.empty()) {
      ReplaceValue(*container_env, before + "," + names);
    } else if (container_env == nullptr) {
      Insert(command_.first.begin, {"--container-env=" + names});
    }
    const std::string mounted = Mounts(mounts != nullptr ? mounts->values[0] : "");
    if (mounted.empty()) return;
    if (mounts != nullptr) {
      ReplaceValue(*mounts, mounts->values[0] + "," + mounted);
    } else {
      Insert(command_.first.begin, {"--container-mounts=" + mounted});
    }
  }

  // "/a:/a:ro,/b:/b" for the folders that the list does not have under their own path.
  std::string Mounts(const std::string& listed) const {
    std::vector<std::string> mounts;
    for (const RankPath& one : paths_) {
      const std::string folder = one.written ? one.path : ParentFolder(one.path);
      bool there = false;
      for (const std::string_view mount : Split(listed, ',')) {
        const std::string_view source = mount.substr(0, mount.find(':'));
        const std::string_view rest = mount.substr(std::min(source.size() + 1, mount.size()));
        const bool same = rest.empty() || rest.substr(0, rest.find(':')) == source;
        there =
            there ||
            (same && !source.empty() &&
             (folder == source || (folder.starts_with(source) && folder[source.size()] == '/')));
      }
      if (!there) mounts.push_back(folder + ":" + folder + (one.written ? "" : ":ro"));
    }
    return Join(mounts, ",");
  }

  void WriteContainer() {
    const size_t behind = command_.first.begin + 1;  // "run" or "exec"
    for (const RankVariable& one : variables_) {
      const bool given =
          std::any_of(command_.variables.begin(), command_.variables.end(),
                      [&](const CommandVariable& variable) { return variable.name == one.name; });
      if (!given) Insert(behind, {"-e", one.name});
    }
    if (command_.words[behind] == "exec") {
      Add("job.unsure", Severity::kWarning,
          "a running container cannot be given files: it has to have the plugin under its path "
          "here",
          "Mount " + (paths_.empty() ? std::string("it") : ParentFolder(paths_[0].path)) +
              " when the container is created");
      return;
    }
    for (const RankPath& one : paths_) {
      const std::string folder = one.written ? one.path : ParentFolder(one.path);
      Insert(behind, {"-v", folder + ":" + folder + (one.written ? "" : ":ro")});
    }
  }

  void CheckDeepspeed() {
    if (command_.hosts == 1) return;
    std::vector<std::string> names;
    for (const RankVariable& one : variables_) {
      if (!one.name.starts_with("NCCL")) names.push_back(one.name);
    }
    Add("job.not-handed-over", command_.hosts > 1 ? Severity::kError : Severity::kWarning,
        "deepspeed passes only NCCL*, PYTHON* and a few other variables on to other hosts, not " +
            Join(names, ", "),
        "Start deepspeed on every host with srun (--no_ssh), or put the lines of "
        "`diapason run --dry-run` into .deepspeed_env");
  }

  const JobCommand& command_;
  const std::vector<RankVariable>& variables_;
  const std::vector<RankPath>& paths_;
  const Environment& environment_;
  std::vector<Edit> edits_;
};

}  // namespace

HandedOver HandOver(const JobCommand& command, const std::vector<RankVariable>& variables,
                    const std::vector<RankPath>& paths, const Environment& environment) {
  HandedOver handed;
  for (const RankVariable& one : variables) handed.environment[one.name] = one.value;
  Writer writer(command, variables, paths, environment);
  writer.Write();
  handed.words = writer.Words();
  handed.way = writer.way;
  handed.environment.merge(writer.changed);
  handed.findings = std::move(writer.findings);
  return handed;
}

}  // namespace diapason::job
