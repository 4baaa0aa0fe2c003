#include "comm/gpu/nvlink.h"

#include <dlfcn.h>

#include <array>

#include "comm/gpu/symbols.h"

namespace diapason::comm::gpu {
namespace {

constexpr int kSuccess = 0;
constexpr unsigned kMostLinks = 18;

// Bytes per second and direction of one link, by NVML's number of the NVLink version: none, 1.0,
// 2.0, 2.2, 3.0, 3.1, 4.0, 5.0.
constexpr std::array<double, 8> kLinkSpeed = {0, 20e9, 25e9, 25e9, 25e9, 25e9, 25e9, 50e9};

struct NvlinkApi {
  int (*Init)();
  int (*Shutdown)();
  int (*DeviceByUuid)(const char*, void**);
  int (*LinkState)(void*, unsigned, int*);
  int (*LinkVersion)(void*, unsigned, unsigned*);

  bool Load(void* library) {
    Symbols symbols(library);
    symbols.Find("nvmlInit_v2", &Init);
    symbols.Find("nvmlShutdown", &Shutdown);
    symbols.Find("nvmlDeviceGetHandleByUUID", &DeviceByUuid);
    symbols.Find("nvmlDeviceGetNvLinkState", &LinkState);
    symbols.Find("nvmlDeviceGetNvLinkVersion", &LinkVersion);
    return symbols.missing().empty();
  }
};

double SumOfLinks(const NvlinkApi& nvml, const std::string& id) {
  void* device = nullptr;
  if (nvml.DeviceByUuid(id.c_str(), &device) != kSuccess) return 0;
  double sum = 0;
  for (unsigned link = 0; link < kMostLinks; ++link) {
    int up = 0;
    unsigned version = 0;
    if (nvml.LinkState(device, link, &up) != kSuccess || up == 0) continue;
    if (nvml.LinkVersion(device, link, &version) != kSuccess) continue;
    // A version newer than this table is faster; a peak that is too low would give more than 100 %.
    if (version >= kLinkSpeed.size()) return 0;
    sum += kLinkSpeed[version];
  }
  return sum;
}

}  // namespace

double NvlinkPeak(const std::string& id) {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return 0;
  double peak = 0;
  NvlinkApi nvml{};
  if (nvml.Load(library) && nvml.Init() == kSuccess) {
    peak = SumOfLinks(nvml, id);
    nvml.Shutdown();
  }
  dlclose(library);
  return peak;
}

}  // namespace diapason::comm::gpu
