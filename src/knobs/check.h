#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/root_fs.h"
#include "domain/finding.h"
#include "knobs/catalogue.h"

namespace diapason::knobs {

// One variable as the user has set it.
struct Assignment {
  std::string name;
  std::string value;   // without its secrets (base/secrets.h)
  std::string source;  // "environment", "/etc/nccl.conf:3", "job.env:12", "process 4711"
  // A value of the same name elsewhere takes precedence (the environment over files).
  bool overridden = false;
  bool global = false;  // from a file that applies to all jobs of the machine or of the user
  bool known = true;    // false: the value is an expression ("$X"), or given elsewhere
  bool own = false;     // the script or program that sets it also uses it
  bool unset = false;   // no value: from here on a value of an outer scope does not hold
  // The blocks of a file in which it holds (files/collector.h): two assignments hold together if
  // the scope of one begins with that of the other.
  std::string scope;
};

// The library that the variables are for. Version 0: unknown; then only findings that hold for
// every version are reported.
struct CheckedFor {
  Library library = Library::kNccl;
  int version = 0;
  // Where to look up files that variables name (plugins, topologies); nullptr: not checked, because
  // the variables are from another machine.
  const RootFs* tree = nullptr;
  // The variables are those of a file: others may be set elsewhere, and the library may be guessed.
  bool file = false;
  bool guessed = false;
  bool either = false;  // the file is for both libraries
};

// Whether a variable belongs to the families below: only values of these are ever shown.
bool IsCollectiveVariable(std::string_view name);

// All variables in an environment that a collective library, its launcher or the diapason plugin
// would read: NCCL_*, RCCL_*, MSCCL*, HSA_*, GLOO_*, DIAPASON_*, TORCH_NCCL_* and similar ones.
std::vector<Assignment> FromEnvironment(const Environment& environment, const std::string& source);
// A file in the syntax of the library: NAME=VALUE, no blanks around '=', no quotes, no "export",
// no comment after a value, and the first of a name takes precedence. `environment` takes
// precedence over all of them. Other files: files/read_file.h.
std::vector<Assignment> FromConfigText(const std::string& text, const std::string& source,
                                       const CheckedFor& checked_for,
                                       const Environment& environment,
                                       std::vector<Finding>* findings);
// The files that the library itself reads, in its order: ~/.nccl.conf, or instead the file that
// NCCL_CONF_FILE names, and then /etc/nccl.conf. RCCL's are called rccl.conf.
std::vector<Assignment> FromConfigFiles(const RootFs& tree, const Environment& environment,
                                        std::vector<Finding>* findings,
                                        const CheckedFor& checked_for = {});

// Problems with the assignments, worst first; a kFine finding for every variable without any.
// Checks of the hardware are in doctor/, not here.
std::vector<Finding> CheckAssignments(const std::vector<Assignment>& assignments,
                                      const CheckedFor& checked_for, const Catalogue& catalogue);

}  // namespace diapason::knobs
