#include "plugin/gpu_memory.h"

#include <dlfcn.h>

#include <cstddef>

namespace diapason::plugin {

std::optional<uint64_t> FreeGpuMemory(Library library) {
  using MemGetInfo = int (*)(size_t*, size_t*);
  const bool amd = library == Library::kRccl;
  void* driver = nullptr;
  for (const char* name : {amd ? "libamdhip64.so" : "libcuda.so.1",
                           amd ? "libamdhip64.so.6" : "libcuda.so", "libamdhip64.so.7"}) {
    driver = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    if (driver != nullptr || !amd) break;
  }
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
