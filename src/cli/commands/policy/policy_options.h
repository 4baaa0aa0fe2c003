#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "policy/parse.h"
#include "policy/policy.h"

namespace diapason::cli {

// Converts to the rules file of Open MPI's tuned component.
inline constexpr const char* kRulesFormat = "openmpi-rules";

// The command lines of `diapason policy ...`.
struct PolicyOptions {
  std::vector<std::string> files;
  std::string file;
  std::string library;  // library of a file that names none
  bool json = false;
  // show; convert to openmpi-rules; 0 means any
  int64_t nodes = 0;
  int64_t ranks = 0;
  int pipe_ops = 1;
  int reg_buff = -1;
  std::string collective;
  // convert
  std::string output;
  std::string to;
  std::string format = "csv";
  std::string origin;
  std::string fingerprint;
  bool accept_edits = false;
  // env
  bool value_only = false;
  // status
  std::vector<std::string> journals;
  std::string store;
};

Result<policy::ParseOptions> ParseOptionsOf(const PolicyOptions& options);

// The policy of a file or, without one, the policy that the settings select, found as the plugin
// finds it. Policies of every library are accepted here; only the plugin requires its own.
Result<policy::Policy> LoadPolicyOf(const PolicyOptions& options, std::string* name);

Result<int> RunPolicyCheck(const PolicyOptions& options);
Result<int> RunPolicyShow(const PolicyOptions& options);
Result<int> RunPolicyConvert(const PolicyOptions& options);
Result<int> RunPolicyEnv(const PolicyOptions& options);
Result<int> RunPolicyStatus(const PolicyOptions& options);

}  // namespace diapason::cli
