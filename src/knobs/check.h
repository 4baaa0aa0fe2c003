#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/root_fs.h"
#include "domain/finding.h"
#include "knobs/catalogue.h"

namespace diapason::knobs {

// One variable as somebody has set it.
struct Assignment {
  std::string name;
  std::string value;   // without its secrets (base/secrets.h)
  std::string source;  // "environment", "/etc/nccl.conf:3", "job.env:12", "process 4711"
  // Where the value loses to one of the same name elsewhere (the environment wins over files).
  bool overridden = false;
  bool global = false;  // from a file that every job on the machine or of the user gets
};

// Which library the variables are meant for. Version 0: not known; then only what holds for every
// version is said.
struct CheckedFor {
  Library library = Library::kNccl;
  int version = 0;
  // Where files that variables name are looked up (plugins, topologies); nullptr: they are not, for
  // the variables are of another machine.
  const RootFs* tree = nullptr;
};

// Whether a variable is of the families below: only of these are values ever shown.
bool IsCollectiveVariable(std::string_view name);

// Everything in an environment that a collective library, its launcher or our plugin would look at:
// NCCL_*, RCCL_*, MSCCL*, HSA_*, GLOO_*, DIAPASON_*, TORCH_NCCL_* and the like.
std::vector<Assignment> FromEnvironment(const Environment& environment, const std::string& source);
// Lines NAME=VALUE as `env` prints them and as shell scripts have them: "export A=1 B=2", "setenv A
// 1", "mpirun -x A=1" and "-genv A 1", "srun --export=ALL,A=1" (and in #SBATCH), "docker run -e
// A=1",
// ": ${A:=1}", quotes, comments, "unset A". A later one wins. Lines with a variable of ours that
// cannot be read are findings; other lines are none of our business.
std::vector<Assignment> FromText(const std::string& text, const std::string& source,
                                 std::vector<Finding>* findings);
// The same for a file as the library itself reads it: no blanks around '=', no quotes, no "export",
// no comment behind a value, and the first of a name wins. `environment` wins over all of them.
std::vector<Assignment> FromConfigText(const std::string& text, const std::string& source,
                                       const CheckedFor& checked_for,
                                       const Environment& environment,
                                       std::vector<Finding>* findings);
// The files the library reads by itself, in its order: ~/.nccl.conf, or instead of it the file that
// NCCL_CONF_FILE names, and then /etc/nccl.conf. RCCL's are called rccl.conf.
std::vector<Assignment> FromConfigFiles(const RootFs& tree, const Environment& environment,
                                        std::vector<Finding>* findings,
                                        const CheckedFor& checked_for = {});

// What is wrong or doubtful with them, worst first; one that is fine for every variable nothing has
// to be said about. `machine_has` questions are not asked here: the doctor looks at hardware.
std::vector<Finding> CheckAssignments(const std::vector<Assignment>& assignments,
                                      const CheckedFor& checked_for, const Catalogue& catalogue);

}  // namespace diapason::knobs
