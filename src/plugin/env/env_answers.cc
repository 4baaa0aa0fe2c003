#include "plugin/env/env_answers.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <strings.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "base/settings.h"
#include "base/text.h"
#include "domain/plugin_names.h"
#include "plugin/abi/env_answered.h"
#include "plugin/abi/host.h"

namespace diapason::plugin {
namespace {

// Written once, under g_once.
constinit char g_file[kLongestPluginPath + 1] = "";
constinit pthread_once_t g_once = PTHREAD_ONCE_INIT;

void FindOwnFile() {
  try {
    const Result<std::string> file = FileOfAddress(reinterpret_cast<const void*>(&FindOwnFile));
    if (file.ok()) memcpy(g_file, file.value().c_str(), file.value().size() + 1);
  } catch (...) {  // no memory: no answer
  }
}

// Whether this file is answered for the variable although, or because, it has this value. Another
// tuner or profiler is loaded by this plugin (plugin/tuner/find_tuner.h,
// plugin/profiler/second_profiler.h).
bool TakesOver(const char* name, const char* value) {
  const bool tuner = strcmp(name, "NCCL_TUNER_PLUGIN") == 0;
  if (!tuner && strcmp(name, "NCCL_PROFILER_PLUGIN") != 0) return false;
  if (value == nullptr) return true;
  // An empty name of a profiler means none.
  return !NamesNoPlugin(value) && !NamesDiapason(value) && (tuner || *value != '\0');
}

// "; the tuner 'x' is chained"
std::string Chained(const char* name, const char* what) {
  const char* value = getenv(name);
  if (value == nullptr || *value == '\0' || !TakesOver(name, value)) return "";
  return Format("; the {} '{}' is chained", what, value);
}

bool SwitchedOff() { return Settings::Read(ProcessEnvironment()).Text(Setting::kMode) == "off"; }

std::string WhatIsAnswered(const Settings& settings) {
  if (settings.Text(Setting::kMode) == "off") return "env plugin: answers nothing, mode off";
  if (g_file[0] != '\0') {
    return Format("env plugin: tuner and profiler plugin are {}", g_file) +
           Chained("NCCL_TUNER_PLUGIN", "tuner") + Chained("NCCL_PROFILER_PLUGIN", "profiler");
  }
  const Result<std::string> file = FileOfAddress(reinterpret_cast<const void*>(&FindOwnFile));
  return "env plugin: answers nothing, " +
         (file.ok() ? std::string("out of memory") : file.status().message());
}

}  // namespace

Result<std::string> FileOfAddress(const void* address) {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 ||
      info.dli_fname == nullptr || map == nullptr) {
    return Invalid("the file this code was loaded from is not known");
  }
  char resolved[PATH_MAX];
  if (realpath(info.dli_fname, resolved) == nullptr) {
    return Invalid(
        Format("'{}', from where this code was loaded, is not found: {}. Set NCCL_ENV_PLUGIN to an "
               "absolute path",
               info.dli_fname, strerror(errno)));
  }
  std::string path = resolved;
  if (path.size() > kLongestPluginPath) {
    return Invalid(
        Format("the library cuts paths after {} characters, and '{}' has {}: put the file "
               "elsewhere",
               kLongestPluginPath, path, path.size()));
  }
  // A relative path may by now name another file. (The main program has no name here.)
  void* again = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (again != nullptr) dlclose(again);
  if (again == nullptr && *map->l_name != '\0' && *map->l_name != '/') {
    return Invalid(
        Format("'{}' now leads to '{}', which is another file. Set NCCL_ENV_PLUGIN to an absolute "
               "path",
               info.dli_fname, path));
  }
  return path;
}

const char* AnswerEnvironment(const char* name) noexcept {
  if (name == nullptr) return nullptr;
  const char* value = getenv(name);
  try {
    if (!TakesOver(name, value)) return value;
    pthread_once(&g_once, FindOwnFile);
    if (g_file[0] == '\0' || SwitchedOff()) return value;
    if (strcmp(name, "NCCL_PROFILER_PLUGIN") == 0) g_answered_for_profiler.store(true);
    return g_file;
  } catch (...) {
    return value;
  }
}

void PrepareAnswers(abi::Logger logger) noexcept {
  pthread_once(&g_once, FindOwnFile);
  if (logger == nullptr) return;
  try {
    const Settings settings = Settings::Read(ProcessEnvironment());
    HostLog(logger, DetectHost(logger, settings)).Info(WhatIsAnswered(settings));
  } catch (...) {  // a line less in the log
  }
}

}  // namespace diapason::plugin
