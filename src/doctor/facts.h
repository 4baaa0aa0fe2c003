#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "domain/finding.h"
#include "host/job_library.h"
#include "host/kernel_log.h"
#include "host/libraries.h"
#include "host/machine.h"
#include "host/system.h"
#include "host/torch.h"
#include "knobs/check.h"

namespace diapason::doctor {

// A plugin for a collective library, as read from its file: the interfaces it offers.
struct PluginFile {
  std::string path;     // "" where there is none
  std::string trouble;  // why it cannot be loaded; "" if no reason is known
  std::vector<int> tuner_apis;
  std::vector<int> profiler_apis;
  std::vector<int> env_apis;
  bool diapason = false;  // it is diapason's own, under whatever name
};
PluginFile LookAtPlugin(const RootFs& tree, const std::string& path);

// The newest interface that both sides support; 0 for none.
int CommonApi(const std::vector<int>& looked_up, const std::vector<int>& offered);

// One target of the short test, and what a measurement says of it.
struct GoalResult {
  std::string name;
  std::string what;   // "allreduce 10MB"
  std::string goal;   // "at most 1 ms"
  std::string value;  // "431 us"; "-" if it was not measured
  std::string interval;
  std::string verdict;  // "met", "MISSED", "not measured: why"
};

// The result of the short test.
struct TestResult {
  bool wanted = false;
  bool on_gpus = false;
  bool shared = false;     // its ranks shared one GPU: targets are shown, but not judged
  std::string trouble;     // why there is no result
  bool timed_out = false;  // `trouble` is that ranks did not start, or a call did not end, in time
  size_t ranks = 0;        // that were started, or should have been
  size_t left_out = 0;     // goals for which there was no time
  std::string headline;    // what was measured, on which ranks
  std::vector<GoalResult> goals;
  double fallback_us = 0;       // all-reduce of a few megabytes on CPUs; 0: not measured
  std::string fallback_what;    // "10 MB on 2 ranks"
  bool fallback_wrong = false;  // results were wrong
};

// All inputs of the checks, so that a test can supply them.
struct CheckInputs {
  host::Machine machine;
  host::System system;
  host::KernelLog kernel_log;
  std::vector<host::LibraryFile> libraries;
  std::string nccl;  // the one that a program would load; "" for none
  std::string rccl;
  std::vector<host::Torch> torch;
  host::JobLibrary job;  // the one that a job will use: PyTorch's, where it has one
  PluginFile plugin;     // the diapason plugin
  PluginFile selected;   // the plugin that NCCL_TUNER_PLUGIN names, if it is a file
  std::vector<knobs::Assignment> assignments;
  std::vector<Finding> environment;  // what is wrong with them
  TestResult test;
  bool live = true;                          // read on the running machine
  std::vector<std::string> usable_backends;  // of `diapason backends`: "gloo", "nccl"

  // The library of the job, by the vendor of the GPUs; nullptr for none.
  const host::LibraryFile* Loaded() const;
  const host::LibraryFile* FileAt(const std::string& path) const;
  // The effective value of a variable; "" if it is not set.
  std::string Variable(const std::string& name) const;
  bool amd() const { return !machine.gpus.empty() && machine.gpus[0].vendor == host::Vendor::kAmd; }
};

// Reads everything except the plugin, the test and the backends.
CheckInputs GatherFacts(const RootFs& tree, const Environment& environment);

// "2.28.9", or the version text in the file.
std::string VersionOf(const host::LibraryFile& file);

// The facts that should be the same on every host of a cluster: name and value, in order.
std::vector<std::pair<std::string, std::string>> ComparableFacts(const CheckInputs& facts);

// One line each, for the head of a report.
std::vector<std::string> DescribeMachine(const CheckInputs& facts);

}  // namespace diapason::doctor
