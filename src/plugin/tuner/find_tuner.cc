#include "plugin/tuner/find_tuner.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "domain/plugin_names.h"
#include "plugin/abi/abi.h"

namespace diapason::plugin {
namespace {

constexpr int kOpen = RTLD_NOW | RTLD_LOCAL;
constexpr int kLastWithV1 = 22005;
// Interface versions of network plugins that may be around; the libraries in use load v5 and later.
constexpr int kOldestNetApi = 4;
constexpr int kNewestNetApi = 16;

std::string Variable(const Environment& environment, const char* name) {
  return environment.Get(name).value_or("");
}

void* TunerSymbol(void* library) {
  for (int api = abi::kNewestApi; api >= 1; --api) {
    void* symbol = dlsym(library, Format("ncclTunerPlugin_v{}", api).c_str());
    if (symbol != nullptr) return symbol;
  }
  return nullptr;
}

// This file, or another one with diapason's plugin: a copy, or another release of it. Two of them
// in one process would both apply the policy.
bool IsDiapason(void* library) {
  void* symbol = TunerSymbol(library);
  if (symbol == nullptr) return false;
  // The name is the first member in every version.
  const char* name = *static_cast<const char* const*>(symbol);
  return name != nullptr && std::strcmp(name, "diapason") == 0;
}

void* OpenFirst(const PluginNames& names, int flags, std::string* name, std::string* error) {
  for (const std::string& one : names) {
    if (void* library = dlopen(one.c_str(), flags); library != nullptr) {
      *name = one;
      return library;
    }
    const char* why = dlerror();
    if (error->empty()) *error = why != nullptr ? why : "it cannot be opened";
  }
  return nullptr;
}

// An object of the process that is a network plugin with a tuner inside.
bool IsNetworkWithTuner(void* library, ElfW(Addr) base) {
  // dlsym also searches the object's dependencies.
  const auto own = [base](void* symbol) {
    Dl_info where;
    link_map* map = nullptr;
    return symbol != nullptr &&
           dladdr1(symbol, &where, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0 &&
           map != nullptr && map->l_addr == base;
  };
  if (!own(TunerSymbol(library))) return false;
  for (int api = kNewestNetApi; api >= kOldestNetApi; --api) {
    if (own(dlsym(library, Format("ncclNetPlugin_v{}", api).c_str()))) return true;
  }
  return false;
}

struct LoadedObjects {
  unsigned long long loads = 0;
  std::vector<std::pair<std::string, ElfW(Addr)>> objects;
  bool out_of_memory = false;
};

// Without an exception: it would have to pass the loader's frames.
int AddObject(dl_phdr_info* info, size_t, void* argument) {
  auto* loaded = static_cast<LoadedObjects*>(argument);
  loaded->loads = info->dlpi_adds;
  if (info->dlpi_name == nullptr || *info->dlpi_name == '\0') return 0;
  try {
    loaded->objects.emplace_back(info->dlpi_name, info->dlpi_addr);
  } catch (...) {
    loaded->out_of_memory = true;
    return 1;
  }
  return 0;
}

// The one network plugin with a tuner that is in the process, by whatever name it was opened. If
// there are several, it is not known which one the library uses.
void* LoadedNetwork(std::string* name) {
  // The number of loads when a search last found nothing: asking hundreds of objects takes
  // milliseconds, and a job may create many communicators.
  static std::atomic<unsigned long long> searched_at{0};
  LoadedObjects loaded;
  dl_iterate_phdr(AddObject, &loaded);
  if (loaded.out_of_memory || loaded.loads == searched_at.load()) return nullptr;
  void* found = nullptr;
  int count = 0;
  for (const auto& [path, base] : loaded.objects) {
    void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    if (IsNetworkWithTuner(library, base) && !IsDiapason(library) && ++count == 1) {
      found = library;
      *name = path;
      continue;
    }
    dlclose(library);
  }
  if (count == 1) return found;
  if (found != nullptr) dlclose(found);
  searched_at.store(loaded.loads);
  return nullptr;
}

// The library takes the last network plugin that it has opened, by name. It opens the plugins of a
// list in order until one works, so this is the last of them that is loaded. If none is loaded, the
// library has opened and closed all of them.
void* NetworkLibrary(const Environment& environment, const Host& host, std::string* name) {
  const std::string value = Variable(environment, "NCCL_NET_PLUGIN");
  if (NamesProgramItself(value)) {
    *name = value;
    return dlopen(nullptr, kOpen);
  }
  const std::vector<PluginNames> plugins = NetPluginNames(host.library, host.version, value);
  if (plugins.empty()) return nullptr;
  std::string error;
  for (auto plugin = plugins.rbegin(); plugin != plugins.rend(); ++plugin) {
    void* library = OpenFirst(*plugin, kOpen | RTLD_NOLOAD, name, &error);
    if (library != nullptr) return library;
  }
  if (void* library = LoadedNetwork(name); library != nullptr) return library;
  for (auto plugin = plugins.rbegin(); plugin != plugins.rend(); ++plugin) {
    if (void* library = OpenFirst(*plugin, kOpen, name, &error); library != nullptr) return library;
  }
  return nullptr;
}

// Step 1 of the search. True: it is over.
bool FindByName(const std::string& value, FoundTuner::Source source, const Host& host,
                FoundTuner* found) {
  if (NamesNoPlugin(value)) return true;
  const bool explicitly = source == FoundTuner::Source::kSetting;
  std::string error;
  if (!value.empty()) {
    // DIAPASON_CHAIN has the rules of the newest releases, which include those of the older ones.
    const int version = explicitly ? 0 : host.version;
    const PluginNames names = TunerPluginNames(host.library, version, value);
    void* library = nullptr;
    if (NamesProgramItself(value)) {
      found->name = value;
      library = dlopen(nullptr, kOpen);
    } else {
      library = OpenFirst(names, kOpen, &found->name, &error);
    }
    const bool ours = library != nullptr && IsDiapason(library);
    if (library != nullptr && !ours) {
      found->library = library;
      found->source = source;
      return true;
    }
    if (explicitly || !ours) {
      found->trouble = ours ? Format("the chained tuner '{}' is this plugin itself", value)
                            : Format("the chained tuner '{}' cannot be opened: {}", value, error);
    }
    if (!ours) return false;
  }
  if (!SearchesForTuner(host.version)) return true;
  void* library =
      OpenFirst(TunerPluginNames(host.library, host.version, ""), kOpen, &found->name, &error);
  if (library == nullptr || IsDiapason(library)) return false;
  found->library = library;
  found->source = FoundTuner::Source::kDefault;
  return true;
}

}  // namespace

FoundTuner FindTuner(const Settings& settings, const Environment& environment, const Host& detected,
                     int api) {
  FoundTuner found;
  Host host = detected;
  // The version may be unknown, but libraries that search for a tuner have a newer API than v1.
  if (api == 1) host.version = kLastWithV1;
  const bool set = settings.IsSet(Setting::kChain);
  const bool over =
      set ? FindByName(settings.Text(Setting::kChain), FoundTuner::Source::kSetting, host, &found)
          : FindByName(Variable(environment, "NCCL_TUNER_PLUGIN"), FoundTuner::Source::kVariable,
                       host, &found);
  if (over || !SearchesForTuner(host.version)) return found;
  void* library = NetworkLibrary(environment, host, &found.name);
  // Most network plugins have no tuner inside.
  if (library == nullptr || TunerSymbol(library) == nullptr || IsDiapason(library)) return found;
  found.library = library;
  found.source = FoundTuner::Source::kNetwork;
  return found;
}

const char* SourceText(FoundTuner::Source source) {
  switch (source) {
    case FoundTuner::Source::kSetting:
      return "DIAPASON_CHAIN";
    case FoundTuner::Source::kVariable:
      return "NCCL_TUNER_PLUGIN";
    case FoundTuner::Source::kDefault:
      return "the library's default name";
    case FoundTuner::Source::kNetwork:
      return "inside the network plugin";
    case FoundTuner::Source::kNone:
      break;
  }
  return "none";
}

std::string BuiltInTunerNote(const Environment& environment, const Host& host,
                             const std::string& policy) {
  if (host.library != Library::kRccl) return "";
  for (const char* name : {"NCCL_TUNER_CONFIG_FILE", "RCCL_TUNER_EMBEDDED_CONFIG"}) {
    const std::string value = Variable(environment, name);
    if (value.empty()) continue;
    std::string note = Format(
        "RCCL's built-in tuner, which {} is for, is off: RCCL uses it only where no tuner plugin "
        "is loaded",
        name);
    if (value == policy) note += "; its table is used as the policy";
    return note;
  }
  return "";
}

}  // namespace diapason::plugin
