#include "plugin/learning/gpu_memory.h"

#include <dlfcn.h>

#include <cstddef>

namespace diapason::plugin {

void* LoadedDriver(Library library) {
  if (library != Library::kRccl) return dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  for (const char* name : {"libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.7"}) {
    if (void* driver = dlopen(name, RTLD_NOW | RTLD_NOLOAD); driver != nullptr) return driver;
  }
  return nullptr;
}

std::optional<uint64_t> FreeGpuMemory(Library library) {
  using MemGetInfo = int (*)(size_t*, size_t*);
  const bool amd = library == Library::kRccl;
  void* driver = LoadedDriver(library);
  if (driver == nullptr) return std::nullopt;
  const auto ask =
      reinterpret_cast<MemGetInfo>(dlsym(driver, amd ? "hipMemGetInfo" : "cuMemGetInfo_v2"));
  size_t free = 0;
  size_t total = 0;
  const bool fine = ask != nullptr && ask(&free, &total) == 0;
  dlclose(driver);
  if (!fine) return std::nullopt;
  return free;
}

}  // namespace diapason::plugin
