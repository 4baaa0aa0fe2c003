#pragma once

#include <string>

#include "base/environment.h"
#include "base/settings.h"
#include "plugin/abi/host.h"

namespace diapason::plugin {

// The tuner that the library would have loaded in our absence, found by the library's own rules:
//   1. the value of NCCL_TUNER_PLUGIN, unless it names this plugin (DIAPASON_CHAIN takes its
//      place); without a value the default name, libnccl-tuner.so. If it opens, the search ends.
//   2. otherwise the network plugin of the job, which may have a tuner inside.
// "none" ends the search. This plugin, under whatever name, link or copy, is passed over, as if its
// name had not been set. Up to 2.20 the library has no rule but NCCL_TUNER_PLUGIN.
//
// The environment is read when a communicator is created: a network plugin may have set
// NCCL_TUNER_PLUGIN by then (aws-ofi-nccl does), and the library would have followed it.
struct FoundTuner {
  enum class Source {
    kNone,
    kSetting,   // DIAPASON_CHAIN
    kVariable,  // NCCL_TUNER_PLUGIN
    kDefault,   // the library's default name
    kNetwork,   // inside the network plugin
  };
  Source source = Source::kNone;
  void* library = nullptr;  // a dlopen handle, which is never closed
  std::string name;         // by which it was opened
  std::string trouble;      // a named tuner that was passed over, and why; for the log
};

// Opens libraries, and so runs their constructors, as the library itself would. Throws only without
// memory. Any thread; takes no lock but the loader's.
// `api` is the tuner API that the library has chosen.
FoundTuner FindTuner(const Settings& settings, const Environment& environment, const Host& host,
                     int api);

// "DIAPASON_CHAIN", "the network plugin", ...
const char* SourceText(FoundTuner::Source source);

// RCCL's built-in tuner is off while any plugin is loaded, and cannot be chained. The sentence that
// says so, if the user has set it up; otherwise empty. `policy` is the name of the policy in use.
std::string BuiltInTunerNote(const Environment& environment, const Host& host,
                             const std::string& policy);

}  // namespace diapason::plugin
