#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "domain/finding.h"
#include "host/libraries.h"
#include "host/machine.h"
#include "host/system.h"
#include "host/torch.h"
#include "knobs/check.h"

namespace diapason::doctor {

// A plugin for a collective library, as its file tells: which interfaces it offers.
struct PluginFile {
  std::string path;     // "" where there is none
  std::string trouble;  // why it cannot be loaded; "" where nothing is known against it
  std::vector<int> tuner_apis;
  std::vector<int> profiler_apis;
  std::vector<int> env_apis;
};
PluginFile LookAtPlugin(const RootFs& tree, const std::string& path);

// The newest interface both sides know; 0 for none.
int CommonApi(const std::vector<int>& looked_up, const std::vector<int>& offered);

// One goal of the short test, as `diapason bench --targets` judged it.
struct GoalResult {
  std::string name;
  std::string what;   // "allreduce 10MB"
  std::string goal;   // "at most 1 ms"
  std::string value;  // "431 us"; "-" where it was not measured
  std::string interval;
  std::string verdict;  // "met", "MISSED", "not measured: why"
};

// What came of the short test.
struct TestResult {
  bool wanted = false;
  bool on_gpus = false;
  bool shared = false;   // its ranks shared one GPU: goals are shown, and nobody is blamed
  std::string trouble;   // why there is no result
  std::string headline;  // who was measured
  std::vector<GoalResult> goals;
  double fallback_us = 0;       // all-reduce of a few megabytes on CPUs; 0: not measured
  std::string fallback_what;    // "10 MB on 2 ranks"
  bool fallback_wrong = false;  // results were wrong
};

// Everything the checks look at. They look at nothing else, so that a test can make one up.
struct CheckInputs {
  host::Machine machine;
  host::System system;
  std::vector<host::LibraryFile> libraries;
  std::string nccl;  // which of them a program would load; "" for none
  std::string rccl;
  std::vector<host::Torch> torch;
  PluginFile plugin;    // ours
  PluginFile selected;  // what NCCL_TUNER_PLUGIN names, where it is a file
  std::vector<knobs::Assignment> assignments;
  std::vector<Finding> environment;  // what is wrong with them
  TestResult test;
  bool live = true;                          // of the machine we run on
  std::vector<std::string> usable_backends;  // of `diapason backends`: "gloo", "nccl"

  // The library that a program here would use, by the maker of the GPUs; nullptr for none.
  const host::LibraryFile* Loaded() const;
  const host::LibraryFile* FileAt(const std::string& path) const;
  // The value of a variable that is in force; "" where it is not set.
  std::string Variable(const std::string& name) const;
  bool amd() const { return !machine.gpus.empty() && machine.gpus[0].vendor == host::Vendor::kAmd; }
};

// Reads all of it but the plugin, the test and the backends.
CheckInputs GatherFacts(const RootFs& tree, const Environment& environment);

// "2.28.9", or what the file says of itself.
std::string VersionOf(const host::LibraryFile& file);

// What ought to be the same on every host of a cluster: name and value, in order.
std::vector<std::pair<std::string, std::string>> ComparableFacts(const CheckInputs& facts);

// One line each, for the head of a report.
std::vector<std::string> DescribeMachine(const CheckInputs& facts);

}  // namespace diapason::doctor
