// What a command line consists of, once it is read.
#include "job/command.h"

namespace diapason::job {

std::string_view LauncherName(Launcher launcher) {
  switch (launcher) {
    case Launcher::kNone:
      return "";
    case Launcher::kOpenMpi:
      return "mpirun (Open MPI)";
    case Launcher::kHydra:
      return "mpiexec (Hydra)";
    case Launcher::kSrun:
      return "srun";
    case Launcher::kTorchrun:
      return "torchrun";
    case Launcher::kDeepspeed:
      return "deepspeed";
    case Launcher::kAccelerate:
      return "accelerate";
    case Launcher::kDiapason:
      return "diapason launch";
    case Launcher::kContainer:
      return "container";
    case Launcher::kSsh:
      return "ssh";
    case Launcher::kBatch:
      return "batch";
  }
  return "";
}

std::string BaseName(const std::string& word) {
  const size_t slash = word.rfind('/');
  return slash == std::string::npos ? word : word.substr(slash + 1);
}

const JobCommand& JobCommand::Starting() const {
  for (const InnerCommand& one : inner) {
    const JobCommand& starting = one.command.Starting();
    if (starting.launcher != Launcher::kNone) return starting;
  }
  return *this;
}

std::vector<std::string> JobCommand::Program() const {
  const JobCommand& starting = Starting();
  const size_t from =
      starting.launcher == Launcher::kNone ? starting.first.begin : starting.first.end;
  return {starting.words.begin() + static_cast<std::ptrdiff_t>(from), starting.words.end()};
}

}  // namespace diapason::job
