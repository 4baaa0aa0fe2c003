#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "domain/finding.h"
#include "job/command.h"
#include "process/spawn.h"

namespace diapason::job {

// A variable that every rank has to get, in the order in which it is shown.
struct RankVariable {
  std::string name;
  std::string value;
};

// A file or folder that the ranks use by its path, also in a container.
struct RankPath {
  std::string path;
  bool written = false;
};

// A command line that gives every rank the variables, as far as its launcher can be told to.
struct HandedOver {
  std::vector<std::string> words;
  process::EnvironmentChanges environment;  // of the process that is started
  std::string way;  // "mpirun -x", "srun --export", "the inherited environment"
  // Variables that do not arrive, or may not: an error is certain.
  std::vector<Finding> findings;

  // The whole environment to start it with: that of this process, changed.
  std::vector<std::string> Environment() const { return process::ChangedEnvironment(environment); }
};

// Pure. `environment` is the one that is inherited: SLURM_EXPORT_ENV and the like.
HandedOver HandOver(const JobCommand& command, const std::vector<RankVariable>& variables,
                    const std::vector<RankPath>& paths, const Environment& environment);

}  // namespace diapason::job
