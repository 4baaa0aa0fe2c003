#include "plugin/profiler/second_library.h"

#include <dlfcn.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/settings.h"
#include "base/status.h"
#include "base/text.h"
#include "domain/plugin_names.h"
#include "plugin/abi/env_answered.h"
#include "plugin/abi/host.h"
#include "plugin/abi/profiler_abi.h"

namespace diapason::plugin {
namespace {

constexpr int kOpenLimitMs = 5000;

enum State : int { kUntried, kOpening, kNone, kOpen };
constinit std::atomic<int> g_state{kUntried};
// Written before the state becomes kOpen.
constinit SecondLibrary g_second{};
constinit std::atomic<pid_t> g_process{0};
constinit std::atomic<bool> g_said{false};
constinit std::atomic<bool> g_warned{false};

struct Wish {
  std::string name;       // empty: none
  bool said = false;      // by our own setting
  bool searched = false;  // if there is none, or it cannot be opened, the library would search on
};

Wish ReadWish(const Settings& settings) {
  if (settings.Text(Setting::kMode) == "off") return {};
  const bool said = settings.IsSet(Setting::kProfilerChain);
  const std::optional<std::string> variable = ProcessEnvironment().Get("NCCL_PROFILER_PLUGIN");
  std::string name = said ? settings.Text(Setting::kProfilerChain) : variable.value_or("");
  const bool none = strcasecmp(name.c_str(), "none") == 0;
  if (none) name.clear();
  // An empty variable means none.
  const bool searched =
      !said && !none && g_answered_for_profiler.load() && (!variable || !name.empty());
  return {name, said, searched};
}

// Accepts the forms that the library accepts: a file, or a short name.
void* OpenFile(const std::string& name, std::string* error) {
  void* file = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (file != nullptr) return file;
  const char* first_error = dlerror();
  *error = first_error != nullptr ? first_error : "unknown reason";
  if (name.find('/') != std::string::npos) return nullptr;
  for (const char* prefix : {"libnccl-profiler-", "librccl-profiler-"}) {
    file = dlopen((prefix + name + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (file != nullptr) return file;
  }
  return nullptr;
}

// The newest version that the file has and the library speaks.
Status FindVersion(void* file, int newest, SecondLibrary* second) {
  for (int api = abi::kNewestProfilerApi; api >= 1; --api) {
    const void* symbol = dlsym(file, Format("ncclProfiler_v{}", api).c_str());
    if (symbol == nullptr) continue;
    if (api > newest) {
      second->api = -api;  // for the message, if there is no other
      continue;
    }
    const auto* profiler = static_cast<const abi::ProfilerV5<void>*>(symbol);
    second->api = api;
    second->symbol = symbol;
    second->name = profiler->name != nullptr ? profiler->name : "nameless";
    second->start_event = profiler->start_event;
    second->stop_event = profiler->stop_event;
    second->record_state = reinterpret_cast<int (*)(void*, int, void*)>(profiler->record_state);
    second->finalize = profiler->finalize;
    const bool whole = profiler->init != nullptr && second->start_event != nullptr &&
                       second->stop_event != nullptr && second->record_state != nullptr &&
                       second->finalize != nullptr;
    return whole ? Status() : Unavailable("leaves out a callback");
  }
  if (second->api < 0) {
    return Unavailable(
        Format("speaks only newer versions of the interface than the library's v{}", newest));
  }
  return Unavailable("has no profiler interface");
}

// Any build of this plugin, under whatever name.
bool IsOurs(void* file) { return dlsym(file, "diapason_version") != nullptr; }

Status Open(const std::string& name, int newest, bool* ourselves, SecondLibrary* second) {
  std::string error;
  void* file = OpenFile(name, &error);
  if (file == nullptr) return NotFound("cannot be opened: " + error);
  *ourselves = IsOurs(file);
  if (*ourselves) return Invalid("is this plugin itself");
  return FindVersion(file, newest, second);
}

void* OpenFirst(const PluginNames& names, int flags) {
  for (const std::string& name : names) {
    if (void* file = dlopen(name.c_str(), flags); file != nullptr) return file;
  }
  return nullptr;
}

// The network plugin of the job. The library has loaded it before its profiler, so that none is
// opened here; if it has loaded several of a list, the last one counts.
void* LoadedNetwork(const Host& host) {
  const std::string value = ProcessEnvironment().Get("NCCL_NET_PLUGIN").value_or("");
  const std::vector<PluginNames> plugins = NetPluginNames(host.library, host.version, value);
  for (auto plugin = plugins.rbegin(); plugin != plugins.rend(); ++plugin) {
    void* file = OpenFirst(*plugin, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (file != nullptr) return file;
  }
  return nullptr;
}

// The profiler that no variable names. Silent where there is none: that is the usual case.
bool OpenUnnamed(const ProfilerInit& init, const Host& host, bool by_default_name) {
  void* file = nullptr;
  if (by_default_name) {
    file = OpenFirst(ProfilerPluginNames(host.library, host.version, ""), RTLD_NOW | RTLD_LOCAL);
    if (file != nullptr && IsOurs(file)) file = nullptr;
    g_second.place = ", by the library's default name";
  }
  // A file of the default name ends the search, whatever it contains.
  if (file == nullptr) {
    file = LoadedNetwork(host);
    g_second.place = ", inside the network plugin";
  }
  return file != nullptr && !IsOurs(file) && FindVersion(file, init.api, &g_second).ok();
}

HostLog LogOf(const ProfilerInit& init) {
  return {init.logger, DetectHost(init.logger, Settings::Read(ProcessEnvironment()))};
}

// False: there is none.
bool OpenWished(const ProfilerInit& init) {
  const Settings settings = Settings::Read(ProcessEnvironment());
  const Wish wish = ReadWish(settings);
  if (wish.name.empty()) {
    return wish.searched && OpenUnnamed(init, DetectHost(init.logger, settings), true);
  }
  bool ourselves = false;
  const Status opened = Open(wish.name, init.api, &ourselves, &g_second);
  if (opened.ok()) return true;
  // NCCL_PROFILER_PLUGIN usually names this plugin.
  if (ourselves && !wish.said) return false;
  LogOf(init).Warn("the chained profiler '" + wish.name + "' " + opened.message() +
                   "; going on without it");
  if (!wish.searched || opened.code() != ErrorCode::kNotFound) return false;
  g_second = SecondLibrary();
  return OpenUnnamed(init, DetectHost(init.logger, settings), false);
}

void Pause() noexcept {
  const timespec pause{0, 1'000'000};
  nanosleep(&pause, nullptr);
}

}  // namespace

const SecondLibrary* OpenSecondLibrary(const ProfilerInit& init) noexcept {
  int state = kUntried;
  if (g_state.compare_exchange_strong(state, kOpening)) {
    bool open = false;
    try {
      open = OpenWished(init);
    } catch (...) {  // no memory: none
    }
    g_process.store(getpid());
    g_state.store(open ? kOpen : kNone);
  }
  // No lock: a process that forks meanwhile must not wait for ever.
  for (int i = 0; g_state.load() == kOpening && i < kOpenLimitMs; ++i) Pause();
  return UsedSecondLibrary();
}

const SecondLibrary* UsedSecondLibrary() noexcept {
  return g_state.load(std::memory_order_acquire) == kOpen ? &g_second : nullptr;
}

pid_t OwnProcess() noexcept { return g_process.load(std::memory_order_relaxed); }

bool SecondLibrary::Init(const ProfilerInit& init, int* mask, void** context) const noexcept {
  *context = nullptr;
  const char* comm_name = init.name.empty() ? nullptr : init.name.c_str();
  const int nodes = static_cast<int>(init.nodes);
  const int ranks = static_cast<int>(init.ranks);
  int result = 0;
  if (api <= 3) {
    result = static_cast<const abi::ProfilerV1<void, void>*>(symbol)->init(context, mask);
  } else if (api == 4) {
    result = static_cast<const abi::ProfilerV4*>(symbol)->init(
        context, mask, comm_name, init.comm_id, nodes, ranks, init.rank, init.logger);
  } else {
    result = static_cast<const abi::ProfilerV5<void>*>(symbol)->init(
        context, init.comm_id, mask, comm_name, nodes, ranks, init.rank, init.logger);
  }
  if (result == abi::kSuccess) return true;
  *context = nullptr;
  if (g_warned.exchange(true)) return false;
  try {
    LogOf(init).Warn(
        Format("the chained profiler {} failed to start (result {}): it gets no events "
               "of this communicator",
               name, result));
  } catch (...) {  // a line less in the log
  }
  return false;
}

void SecondLibrary::SayOnce(const ProfilerInit& init, int mask) const noexcept {
  if (g_said.exchange(true)) return;
  try {
    const char* times = (mask & static_cast<int>(abi::kEventKernelCh)) != 0
                            ? "; with KernelCh all the time, which costs time in every call and a "
                              "host node in every "
                              "captured graph"
                            : "";
    LogOf(init).Info(Format("chained profiler {} (v{}{}): gets the events 0x{:x} it asks for{}",
                            name, api, place, static_cast<unsigned>(mask), times));
  } catch (...) {  // a line less in the log
  }
}

}  // namespace diapason::plugin
