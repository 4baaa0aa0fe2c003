#include "device.h"

#include <dlfcn.h>

#include <cstdint>

namespace diapason::conformance {
namespace {

// The entry points carry the version suffix that cuda.h gives them.
struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*allocate)(uintptr_t*, size_t) = nullptr;
  int (*free)(uintptr_t) = nullptr;
  int (*upload)(uintptr_t, const void*, size_t) = nullptr;
  int (*download)(void*, uintptr_t, size_t) = nullptr;
  std::string missing;
};

template <typename T>
void Find(void* library, const char* name, T* function, Driver* driver) {
  *function = reinterpret_cast<T>(dlsym(library, name));
  if (*function == nullptr) driver->missing = std::string("the GPU's driver has no ") + name;
}

Driver Open() {
  Driver driver;
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    driver.missing = "no GPU driver (libcuda.so.1)";
    return driver;
  }
  Find(library, "cuInit", &driver.init, &driver);
  Find(library, "cuDeviceGetCount", &driver.device_count, &driver);
  Find(library, "cuDeviceGet", &driver.device_get, &driver);
  Find(library, "cuDevicePrimaryCtxRetain", &driver.retain, &driver);
  Find(library, "cuCtxSetCurrent", &driver.set_current, &driver);
  Find(library, "cuMemAlloc_v2", &driver.allocate, &driver);
  Find(library, "cuMemFree_v2", &driver.free, &driver);
  Find(library, "cuMemcpyHtoD_v2", &driver.upload, &driver);
  Find(library, "cuMemcpyDtoH_v2", &driver.download, &driver);
  return driver;
}

const Driver& Get() {
  static const Driver driver = Open();
  return driver;
}

}  // namespace

std::string BindDevice(int index) {
  const Driver& driver = Get();
  if (!driver.missing.empty()) return driver.missing;
  int count = 0;
  if (driver.init(0) != 0 || driver.device_count(&count) != 0 || count < 1) return "no GPU";
  int device = 0;
  void* context = nullptr;
  if (driver.device_get(&device, index % count) != 0 || driver.retain(&context, device) != 0 ||
      driver.set_current(context) != 0) {
    return "the GPU refuses a context";
  }
  return "";
}

void* DeviceAllocate(size_t bytes) {
  uintptr_t pointer = 0;
  return Get().allocate(&pointer, bytes) == 0 ? reinterpret_cast<void*>(pointer) : nullptr;
}

void DeviceFree(void* pointer) { Get().free(reinterpret_cast<uintptr_t>(pointer)); }

bool DeviceUpload(void* device, const void* host, size_t bytes) {
  return Get().upload(reinterpret_cast<uintptr_t>(device), host, bytes) == 0;
}

bool DeviceDownload(void* host, const void* device, size_t bytes) {
  return Get().download(host, reinterpret_cast<uintptr_t>(device), bytes) == 0;
}

}  // namespace diapason::conformance
