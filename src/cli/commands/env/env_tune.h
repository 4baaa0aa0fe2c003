#pragma once

#include <string>
#include <vector>

#include "env_tune/session.h"

namespace diapason::cli {

// The command line of `diapason env tune`, unparsed.
struct EnvTuneOptions {
  std::vector<std::string> knobs;
  std::string knob_file;
  std::string library;
  std::string version;
  std::string binds;
  std::string metric;
  std::string pick = "last";
  std::string bench;
  std::string iteration;
  bool higher = false;
  std::string margin = "1%";
  std::string alpha = "5%";
  std::string max_cpu;
  std::string max_memory;
  double budget = 600;  // seconds
  double timeout = 0;   // seconds of one run; 0: derived from the first run
  int baseline_runs = 5;
  int blocks = 16;
  int validation = 10;
  bool abba = false;
  uint64_t seed = 1;
  std::string state;
  bool resume = false;
  std::string output;
  bool json = false;
  bool verbose = false;
  bool quiet = false;
  std::vector<std::string> command;
};

// Parses the options into a request. Searches for libraries on this machine.
Result<env_tune::TuneRequest> EnvTuneRequest(const EnvTuneOptions& options);

void PrintEnvTuneJson(const env_tune::TuneRequest& request, const env_tune::TuneResult& result,
                      const host::Machine& machine);

}  // namespace diapason::cli
