#include "plugin/env/env_answers.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "base/settings.h"
#include "base/text.h"
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

bool NamesPlugin(const char* name) {
  return strcmp(name, "NCCL_TUNER_PLUGIN") == 0 || strcmp(name, "NCCL_PROFILER_PLUGIN") == 0;
}

bool SwitchedOff() { return Settings::Read(ProcessEnvironment()).Text(Setting::kMode) == "off"; }

std::string WhatIsAnswered(const Settings& settings) {
  if (settings.Text(Setting::kMode) == "off") return "env plugin: answers nothing, mode off";
  if (g_file[0] != '\0') {
    return Format("env plugin: tuner and profiler plugin are %s where they are not set", g_file);
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
        Format("'%s', from where this code was loaded, is not found: %s. Set NCCL_ENV_PLUGIN to an "
               "absolute path",
               info.dli_fname, strerror(errno)));
  }
  std::string path = resolved;
  if (path.size() > kLongestPluginPath) {
    return Invalid(
        Format("the library cuts paths after %zu characters, and '%s' has %zu: put the file "
               "elsewhere",
               kLongestPluginPath, path.c_str(), path.size()));
  }
  // A relative path may by now name another file. (The main program has no name here.)
  void* again = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (again != nullptr) dlclose(again);
  if (again == nullptr && *map->l_name != '\0' && *map->l_name != '/') {
    return Invalid(
        Format("'%s' now leads to '%s', which is another file. Set NCCL_ENV_PLUGIN to an absolute "
               "path",
               info.dli_fname, path.c_str()));
  }
  return path;
}

const char* AnswerEnvironment(const char* name) noexcept {
  if (name == nullptr) return nullptr;
  const char* value = getenv(name);
  if (value != nullptr || !NamesPlugin(name)) return value;
  pthread_once(&g_once, FindOwnFile);
  try {
    return g_file[0] == '\0' || SwitchedOff() ? nullptr : g_file;
  } catch (...) {
    return nullptr;
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
