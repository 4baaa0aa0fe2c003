#include "job/mpi_program.h"

#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "host/elf.h"

namespace diapason::job {
namespace {

bool Begins(const std::string& name, std::initializer_list<const char*> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const char* one) { return name.starts_with(one); });
}

// The file of a program as a shell finds it; "": there is none.
std::string FileOf(const std::string& word, const Environment& environment) {
  if (word.find('/') != std::string::npos) return word;
  const std::string path = environment.Get("PATH").value_or("/usr/bin:/bin");
  for (const std::string_view folder : Split(path, ':')) {
    const std::string file = std::string(folder) + "/" + word;
    if (!folder.empty() && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

// The last part of a word that is a parameter of coll_tuned; "".
std::string TunedParameter(const std::string& word) {
  const size_t at = word.find("coll_tuned_");
  return at == std::string::npos ? "" : word.substr(at, word.find('=', at) - at);
}

bool Chooses(const std::string& parameter) {
  return parameter.find("dynamic_rules") != std::string::npos ||
         parameter.ends_with("_algorithm") || parameter.ends_with("_segmentsize");
}

}  // namespace

bool IsMpiProgram(const JobCommand& command, const Environment& environment) {
  const std::vector<std::string> program = command.Program();
  if (program.empty()) return false;
  const Result<host::ElfFile> file = host::ElfFile::Open(FileOf(program[0], environment));
  if (!file.ok()) return false;
  bool mpi = false;
  for (const std::string& name : file.value().ReadDynamic().needed) {
    if (Begins(name, {"libnccl", "librccl", "libcuda", "libamdhip", "libtorch"})) return false;
    mpi = mpi || Begins(name, {"libmpi.so", "libmpi_", "libmpich", "libmpifort", "libmpicxx"});
  }
  return mpi;
}

std::vector<Finding> CheckOwnRules(const JobCommand& command, const Environment& environment) {
  std::vector<std::string> evidence;
  for (const std::string& word : command.Starting().words) {
    if (Chooses(TunedParameter(word))) evidence.push_back(word);
  }
  for (const std::string& name : environment.Names()) {
    if (name.starts_with("OMPI_MCA_") && Chooses(TunedParameter(name))) {
      evidence.push_back(name + "=" + environment.Get(name).value_or(""));
    }
  }
  if (evidence.empty()) return {};
  return {{"job.own-rules", Severity::kError,
           "the command chooses Open MPI's algorithms itself, and that would win over the rules",
           evidence, "Remove these parameters, or run it without --policy"}};
}

}  // namespace diapason::job
