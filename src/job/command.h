#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"

namespace diapason::job {

// What starts the ranks of a command, as far as it matters for their environment.
enum class Launcher : uint8_t {
  kNone,        // none that is known here: the program inherits the environment
  kOpenMpi,     // mpirun of Open MPI: other hosts get what -x names
  kHydra,       // mpiexec of MPICH, Intel MPI and MVAPICH: -genv
  kSrun,        // --export, and --container-env with pyxis
  kTorchrun,    // also python -m torch.distributed.run
  kDeepspeed,   // on several hosts it passes on NCCL*, PYTHON* and a few more
  kAccelerate,  // accelerate launch
  kDiapason,    // diapason launch
  kContainer,   // docker, podman: nothing is inherited
  kSsh,         // another host: nothing is inherited
  kBatch,       // sbatch, bsub, qsub: returns before the job runs
};
// "mpirun (Open MPI)", "torchrun"; "" for kNone.
std::string_view LauncherName(Launcher launcher);

// One program of a command line, which starts the next one.
struct CommandPart {
  std::string name;  // without its folder
  size_t begin = 0;  // the word that names it
  size_t end = 0;    // the first word of what it starts; words.size() if that is nothing
};

// A variable that the command line sets itself.
struct CommandVariable {
  std::string name;
  std::string value;
  bool removed = false;  // env -u NAME
  size_t word = 0;       // where
};

struct InnerCommand;

// A command line, read from the left: prefixes such as `env A=1`, `nice` or `timeout 60`, then the
// launcher, whose options end where the program of the ranks begins.
struct JobCommand {
  std::vector<std::string> words;
  std::vector<CommandPart> prefixes;  // outermost first
  Launcher launcher = Launcher::kNone;
  CommandPart first;  // the launcher; without one, the program itself
  std::vector<CommandVariable> variables;
  bool clears = false;  // env -i: nothing is inherited
  int hosts = 0;        // on which it starts ranks; 0: the command line does not say
  // `bash -c TEXT`: the word that is TEXT, and the commands in it.
  size_t text = 0;
  std::vector<InnerCommand> inner;
  // A launcher that is named further on, behind words that cannot be read with certainty; or "".
  std::string hidden;

  // The command that starts the ranks: this one, or the one in `bash -c` that has a launcher.
  const JobCommand& Starting() const;
  // Of Starting(): the words of the ranks' program; empty if the launcher names none.
  std::vector<std::string> Program() const;
};

// A command in the text of `bash -c`.
struct InnerCommand {
  JobCommand command;
  std::vector<size_t> begins;  // of its words in the text
  std::vector<size_t> ends;
};

struct ReadOptions {
  // The output of `PROGRAM --version`, by which mpirun says whose it is. Empty: it is run, with a
  // limit of ten seconds.
  std::function<std::string(const std::string& program)> version;
  // Where hosts are counted that the command line does not name: SLURM_JOB_NUM_NODES.
  const Environment* environment = nullptr;
};

// Reads a command line. Never fails: what it does not know is a program that inherits its
// environment. May read a host file that the command names. REQUIRES: at least one word.
JobCommand ReadCommand(std::vector<std::string> words, const ReadOptions& options = {});

// "/usr/bin/mpirun" -> "mpirun".
std::string BaseName(const std::string& word);

}  // namespace diapason::job
