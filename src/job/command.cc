#include "job/command.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "job/option_shapes.h"
#include "job/shell_text.h"
#include "launch/launcher.h"
#include "process/child.h"

namespace diapason::job {
namespace {

constexpr int kMostDepth = 4;  // of shells within shells

bool IsOneOf(const std::string& name, std::initializer_list<const char*> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "NAME=VALUE" with a name that a shell accepts.
bool IsAssignment(const std::string& word, size_t* equals) {
  *equals = word.find('=');
  if (*equals == std::string::npos || *equals == 0 || (word[0] >= '0' && word[0] <= '9')) {
    return false;
  }
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(*equals), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string VersionText(const std::string& program) {
  std::string text;
  process::ChildOptions options;
  options.command = {program, "--version"};
  options.out = [&text](std::string_view piece) { text.append(piece.substr(0, 4096)); };
  options.err = options.out;
  Result<std::unique_ptr<process::Child>> child = process::Child::Start(std::move(options));
  if (!child.ok()) return "";
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  if (!child.value()->Wait(limit)) return "";
  child.value()->Drain();
  return text;
}

int CountHosts(const std::string& list) {
  std::set<std::string> hosts;
  for (const std::string_view one : Split(list, ',')) {
    hosts.insert(std::string(one.substr(0, one.find(':'))));
  }
  return static_cast<int>(hosts.size());
}

int HostsInFile(const std::string& path) {
  const Result<std::vector<std::string>> hosts = launch::ReadHostFile(path);
  return hosts.ok() ? static_cast<int>(hosts.value().size()) : 0;
}

// "2", "1-4", "1:4": the largest number; 0 for none.
int Largest(const std::string& text) {
  uint64_t number = 0;
  const size_t separator = text.find_last_of("-:");
  const std::string last = separator == std::string::npos ? text : text.substr(separator + 1);
  return ParseUnsigned(last, &number) && number < 1000000 ? static_cast<int>(number) : 0;
}

class Reader {
 public:
  Reader(std::vector<std::string> words, const ReadOptions& options, int depth)
      : options_(options), depth_(depth) {
    read_.words = std::move(words);
  }

  JobCommand Read() {
    while (at_ < read_.words.size() && ReadPrefix()) {
    }
    if (at_ < read_.words.size()) {
      ReadLauncher();
    } else {
      read_.first = {"", at_, at_};
    }
    if (read_.launcher == Launcher::kNone && read_.inner.empty()) FindHidden();
    return std::move(read_);
  }

 private:
  const std::string& Word(size_t at) const { return read_.words[at]; }

  void AddVariable(const std::string& word, size_t at) {
    size_t equals = 0;
    if (!IsAssignment(word, &equals)) return;
    read_.variables.push_back({word.substr(0, equals), word.substr(equals + 1), false, at});
  }

  // Assignments of a shell, or of env and sudo.
  void ReadAssignments() {
    size_t equals = 0;
    while (at_ < read_.words.size() && IsAssignment(Word(at_), &equals)) {
      AddVariable(Word(at_), at_);
      ++at_;
    }
  }

  // True if a prefix was read, and something follows it.
  bool ReadPrefix() {
    ReadAssignments();
    if (at_ >= read_.words.size()) return true;
    const size_t begin = at_;
    const std::string name = BaseName(Word(at_));
    if (name == "env") {
      if (!ReadEnv()) return false;
    } else if (IsOneOf(name, {"sudo", "doas"})) {
      static const OptionShape kSudo{.one = "user group chdir host prompt role type",
                                     .letters = "CDghpRrTtu",
                                     .clustered = true};
      at_ = ReadOptionWords(read_.words, at_ + 1, kSudo).end;
      read_.clears = true;
      ReadAssignments();
    } else if (name == "salloc") {
      const ReadWords words = ReadOptionWords(read_.words, at_ + 1, SrunShape());
      CountSlurmHosts(words);
      at_ = words.end;
    } else if (const OptionShape* shape = PrefixShape(name)) {
      at_ = ReadOptionWords(read_.words, at_ + 1, *shape).end;
    } else {
      return false;
    }
    read_.prefixes.push_back({name, begin, at_});
    return true;
  }

  // False: with options that cannot be read.
  bool ReadEnv() {
    const size_t begin = at_++;
    for (; at_ < read_.words.size() && Word(at_).starts_with('-'); ++at_) {
      const std::string& word = Word(at_);
      if (word == "-" || word == "-i" || word == "--ignore-environment") {
        read_.clears = true;
      } else if (word == "-u" || word == "-C" || word == "--unset" || word == "--chdir") {
        if (++at_ >= read_.words.size()) break;
        if (word == "-u" || word == "--unset") {
          read_.variables.push_back({Word(at_), "", true, at_});
        }
      } else if (word.starts_with("--unset=")) {
        read_.variables.push_back({word.substr(8), "", true, at_});
      } else if (!word.starts_with("--chdir=") && word != "-v" && word != "--debug" &&
                 word != "-0") {
        at_ = begin;
        return false;
      }
    }
    ReadAssignments();
    return true;
  }

  void Take(Launcher launcher, const ReadWords& words) {
    read_.launcher = launcher;
    read_.first.end = words.end;
  }

  void ReadLauncher() {
    const std::string name = BaseName(Word(at_));
    read_.first = {name, at_, read_.words.size()};
    if (IsOneOf(name,
                {"mpirun", "mpiexec", "orterun", "prterun", "mpirun.openmpi", "mpiexec.openmpi",
                 "mpiexec.hydra", "mpirun.mpich", "mpiexec.mpich", "prun"})) {
      ReadMpi(name);
    } else if (name == "srun") {
      ReadSrun();
    } else if (name == "torchrun") {
      ReadTorchrun(at_ + 1);
    } else if (name.starts_with("python") || name == "pypy3") {
      ReadPython();
    } else if (IsOneOf(name, {"deepspeed", "deepspeed.exe", "ds"})) {
      ReadDeepspeed(at_ + 1);
    } else if (name == "accelerate" && Follows("launch")) {
      ReadAccelerate(at_ + 2);
    } else if (name == "diapason" && Follows("launch")) {
      Take(Launcher::kDiapason, ReadOptionWords(read_.words, at_ + 2, DiapasonLaunchShape()));
      read_.hosts = 1;
    } else if (IsOneOf(name, {"docker", "podman", "nvidia-docker"}) &&
               (Follows("run") || Follows("exec"))) {
      ReadContainer();
    } else if (IsOneOf(name, {"ssh", "pdsh", "clush", "dsh", "mpssh"})) {
      read_.launcher = Launcher::kSsh;
    } else if (IsOneOf(name, {"sbatch", "bsub", "qsub"})) {
      read_.launcher = Launcher::kBatch;
    } else if (IsOneOf(name, {"bash", "sh", "dash", "zsh", "ksh"})) {
      ReadShell();
    } else if (name == "export" || name == "declare" || name == "setenv") {
      for (size_t i = at_ + 1; i < read_.words.size(); ++i) AddVariable(Word(i), i);
    }
  }

  bool Follows(const char* word) const {
    return at_ + 1 < read_.words.size() && Word(at_ + 1) == word;
  }

  // Hydra's by name, by its options, or by what it says of itself.
  bool IsHydra(const std::string& name) const {
    if (IsOneOf(name, {"mpiexec.hydra", "mpirun.mpich", "mpiexec.mpich"})) return true;
    if (name != "mpirun" && name != "mpiexec") return false;
    const std::string text =
        options_.version ? options_.version(Word(at_)) : VersionText(Word(at_));
    if (text.find("Open MPI") != std::string::npos || text.find("PRRTE") != std::string::npos) {
      return false;
    }
    if (text.find("HYDRA") != std::string::npos || text.find("Intel(R) MPI") != std::string::npos ||
        text.find("MPICH") != std::string::npos || text.find("mvapich") != std::string::npos) {
      return true;
    }
    for (size_t i = at_ + 1; i < read_.words.size(); ++i) {
      if (IsOneOf(Word(i), {"-genv", "-genvall", "-genvnone", "-ppn", "-hosts", "-envall"})) {
        return true;
      }
    }
    return false;
  }

  void ReadMpi(const std::string& name) {
    const bool hydra = IsHydra(name);
    const ReadWords words =
        ReadOptionWords(read_.words, at_ + 1, hydra ? HydraShape() : OpenMpiShape());
    Take(hydra ? Launcher::kHydra : Launcher::kOpenMpi, words);
    for (const ReadOption& option : words.options) {
      if (option.values.empty()) continue;
      const std::string& value = option.values[0];
      if (!hydra && option.name == "x") AddVariable(value, option.word);
      if (hydra && option.values.size() == 2) {
        read_.variables.push_back({value, option.values[1], false, option.word});
      }
      if (IsOneOf(option.name, {"H", "host", "hosts"})) read_.hosts = CountHosts(value);
      if (IsOneOf(option.name, {"hostfile", "machinefile", "default-hostfile"}) ||
          (hydra && option.name == "f")) {
        read_.hosts = HostsInFile(value);
      }
    }
    if (read_.hosts == 0) read_.hosts = AllocatedHosts();
  }

  int AllocatedHosts() const {
    if (options_.environment == nullptr) return 0;
    return Largest(options_.environment->Get("SLURM_JOB_NUM_NODES").value_or(""));
  }

  void CountSlurmHosts(const ReadWords& words) {
    for (const ReadOption& option : words.options) {
      if (option.values.empty()) continue;
      if (option.name == "N" || option.name == "nodes") read_.hosts = Largest(option.values[0]);
    }
  }

  void ReadSrun() {
    const ReadWords words = ReadOptionWords(read_.words, at_ + 1, SrunShape());
    Take(Launcher::kSrun, words);
    CountSlurmHosts(words);
    if (read_.hosts == 0) read_.hosts = AllocatedHosts();
    for (const ReadOption& option : words.options) {
      if (option.name != "export" || option.values.empty()) continue;
      for (const std::string_view one : Split(option.values[0], ',')) {
        AddVariable(std::string(one), option.word);
      }
    }
  }

  void ReadTorchrun(size_t from) {
    const ReadWords words = ReadOptionWords(read_.words, from, TorchrunShape());
    Take(Launcher::kTorchrun, words);
    read_.hosts = 1;
    for (const ReadOption& option : words.options) {
      if (option.name == "nnodes" && !option.values.empty())
        read_.hosts = Largest(option.values[0]);
    }
  }

  void ReadDeepspeed(size_t from) {
    const ReadWords words = ReadOptionWords(read_.words, from, DeepspeedShape());
    Take(Launcher::kDeepspeed, words);
    std::string file = "/job/hostfile";
    int limit = 0;
    for (const ReadOption& option : words.options) {
      if (option.values.empty()) continue;
      if (option.name == "hostfile" || option.name == "H") file = option.values[0];
      if (option.name == "num_nodes") limit = Largest(option.values[0]);
    }
    read_.hosts = FileExists(file) ? HostsInFile(file) : 1;
    if (limit > 0) read_.hosts = limit;
  }

  void ReadAccelerate(size_t from) {
    const ReadWords words = ReadOptionWords(read_.words, from, AccelerateShape());
    Take(Launcher::kAccelerate, words);
    for (const ReadOption& option : words.options) {
      if (option.name == "num_machines" && !option.values.empty()) {
        read_.hosts = Largest(option.values[0]);
      }
    }
  }

  void ReadPython() {
    size_t at = at_ + 1;
    for (; at < read_.words.size() && Word(at).starts_with('-'); ++at) {
      const std::string& word = Word(at);
      if (word == "-m" && at + 1 < read_.words.size()) {
        const std::string& module = Word(at + 1);
        if (IsOneOf(module, {"torch.distributed.run", "torch.distributed.launch"})) {
          ReadTorchrun(at + 2);
        } else if (IsOneOf(module, {"accelerate.commands.launch"})) {
          ReadAccelerate(at + 2);
        } else if (IsOneOf(module, {"deepspeed.launcher.runner", "deepspeed"})) {
          ReadDeepspeed(at + 2);
        }
        return;
      }
      if (word == "-c" || word == "-m") return;
      if (word == "-W" || word == "-X") ++at;
    }
  }

  void ReadContainer() {
    const ReadWords words = ReadOptionWords(read_.words, at_ + 2, ContainerShape());
    Take(Launcher::kContainer, words);
    read_.hosts = 1;
    for (const ReadOption& option : words.options) {
      if ((option.name == "e" || option.name == "env") && !option.values.empty()) {
        AddVariable(option.values[0], option.word);
      }
    }
  }

  // bash [OPTIONS] -c TEXT [NAME ARGUMENT...]
  void ReadShell() {
    bool reads_text = false;
    size_t at = at_ + 1;
    for (; at < read_.words.size() && Word(at).size() > 1 &&
           (Word(at)[0] == '-' || Word(at)[0] == '+');
         ++at) {
      const std::string& word = Word(at);
      if (word.starts_with("--")) continue;
      reads_text = reads_text || word.find('c') != std::string::npos;
      if (word.back() == 'o' || word.back() == 'O') ++at;
    }
    if (!reads_text || at >= read_.words.size() || depth_ >= kMostDepth) return;
    read_.text = at;
    for (const std::vector<ShellTextWord>& found : SimpleCommands(Word(at))) {
      InnerCommand inner;
      std::vector<std::string> words;
      for (const ShellTextWord& word : found) {
        words.push_back(word.text);
        inner.begins.push_back(word.begin);
        inner.ends.push_back(word.end);
      }
      inner.command = Reader(std::move(words), options_, depth_ + 1).Read();
      read_.inner.push_back(std::move(inner));
    }
  }

  void FindHidden() {
    for (size_t i = read_.first.begin + 1; i < read_.words.size(); ++i) {
      const std::string name = BaseName(Word(i));
      if (IsOneOf(name,
                  {"mpirun", "mpiexec", "orterun", "prterun", "srun", "mpiexec.hydra", "ssh"})) {
        read_.hidden = name;
        return;
      }
    }
  }

  const ReadOptions& options_;
  int depth_;
  size_t at_ = 0;
  JobCommand read_;
};

}  // namespace

JobCommand ReadCommand(std::vector<std::string> words, const ReadOptions& options) {
  return Reader(std::move(words), options, 0).Read();
}

}  // namespace diapason::job
