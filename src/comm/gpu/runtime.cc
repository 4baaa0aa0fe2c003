#include "comm/gpu/runtime.h"

#include <dlfcn.h>

#include <utility>

#include "base/text.h"

namespace diapason::comm::gpu {

Runtime* InProcess() {
  const auto loaded = [](const char* library) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    if (handle != nullptr) dlclose(handle);
    return handle != nullptr;
  };
  if (loaded("libcuda.so.1")) {
    if (const Result<Runtime*> cuda = Cuda(); cuda.ok()) return cuda.value();
  }
  for (const char* library : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}) {
    if (!loaded(library)) continue;
    if (const Result<Runtime*> hip = Hip(); hip.ok()) return hip.value();
  }
  return nullptr;
}

std::string DevicesText(const Runtime& runtime) {
  std::vector<std::pair<std::string, int>> kinds;
  for (int device = 0; device < runtime.DeviceCount(); ++device) {
    const std::string name = runtime.DeviceName(device);
    if (!kinds.empty() && kinds.back().first == name) {
      ++kinds.back().second;
    } else {
      kinds.emplace_back(name, 1);
    }
  }
  std::vector<std::string> parts;
  for (const auto& [name, count] : kinds) parts.push_back(Format("{} x {}", count, name));
  return Join(parts, " and ");
}

}  // namespace diapason::comm::gpu
