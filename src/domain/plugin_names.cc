#include "domain/plugin_names.h"

#include "base/text.h"

namespace diapason {
namespace {

constexpr int kFirstWithDefaultTuner = 22100;
constexpr int kFirstRcclWithNcclNames = 22700;
constexpr int kFirstRcclWithNcclProfiler = 22900;
constexpr int kFirstWithNetList = 22700;
constexpr size_t kMostNetPlugins = 14;  // of a list; the library ignores the others

bool Before(int version, int first) { return version != 0 && version < first; }

// The value as given; then, if it is neither a path nor a library's file name, as the short name of
// a plugin.
PluginNames NamesFor(const std::string& prefix, std::string_view value) {
  if (value.empty()) return {prefix + ".so"};
  PluginNames names = {std::string(value)};
  const bool file = value.find('/') != std::string_view::npos ||
                    (value.starts_with("lib") && value.ends_with(".so"));
  if (!file) names.push_back(prefix + "-" + std::string(value) + ".so");
  return names;
}

}  // namespace

bool NamesNoPlugin(std::string_view value) { return ToLower(value) == "none"; }

bool NamesProgramItself(std::string_view value) {
  return !value.empty() && std::string_view("static_plugin").starts_with(ToLower(value));
}

bool SearchesForTuner(int version) { return !Before(version, kFirstWithDefaultTuner); }

PluginNames TunerPluginNames(Library library, int version, std::string_view value) {
  if (!SearchesForTuner(version)) {
    return value.empty() ? PluginNames() : PluginNames{std::string(value)};
  }
  const bool rccl_names = library == Library::kRccl && Before(version, kFirstRcclWithNcclNames);
  return NamesFor(rccl_names ? "librccl-tuner" : "libnccl-tuner", value);
}

PluginNames ProfilerPluginNames(Library library, int version, std::string_view value) {
  const bool rccl_names = library == Library::kRccl && Before(version, kFirstRcclWithNcclProfiler);
  return NamesFor(rccl_names ? "librccl-profiler" : "libnccl-profiler", value);
}

std::vector<PluginNames> NetPluginNames(Library library, int version, std::string_view value) {
  if (NamesNoPlugin(value)) return {};
  const std::string prefix = library == Library::kRccl ? "librccl-net" : "libnccl-net";
  if (value.empty() || Before(version, kFirstWithNetList)) return {NamesFor(prefix, value)};
  std::vector<PluginNames> plugins;
  for (const std::string_view one : Split(value, ',')) {
    if (one.empty() || NamesNoPlugin(one)) continue;
    if (plugins.size() == kMostNetPlugins) break;
    plugins.push_back(NamesFor(prefix, one));
  }
  return plugins;
}

bool NamesDiapason(std::string_view value) {
  const size_t slash = value.rfind('/');
  const std::string_view file = slash == std::string_view::npos ? value : value.substr(slash + 1);
  return value == "diapason" || (file.starts_with("lib") && file.ends_with("-diapason.so"));
}

}  // namespace diapason
