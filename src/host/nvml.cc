#include "host/nvml.h"

#include <dlfcn.h>

namespace diapason::host {

bool Nvml::Load(void* library) {
  const auto find = [library](const char* name, auto* function) {
    using Function = std::remove_pointer_t<decltype(function)>;
    *function = reinterpret_cast<Function>(dlsym(library, name));
  };
  find("nvmlInit_v2", &Init);
  find("nvmlShutdown", &Shutdown);
  find("nvmlSystemGetDriverVersion", &DriverVersion);
  find("nvmlSystemGetCudaDriverVersion_v2", &CudaVersion);
  find("nvmlDeviceGetCount_v2", &Count);
  find("nvmlDeviceGetHandleByIndex_v2", &ByIndex);
  find("nvmlDeviceGetName", &Name);
  find("nvmlDeviceGetUUID", &Uuid);
  find("nvmlDeviceGetPciInfo_v3", &PciInfo);
  find("nvmlDeviceGetCudaComputeCapability", &Capability);
  find("nvmlDeviceGetMemoryInfo", &MemoryInfo);
  find("nvmlDeviceGetNvLinkState", &LinkState);
  find("nvmlDeviceGetNvLinkErrorCounter", &LinkErrors);
  find("nvmlDeviceGetNvLinkRemotePciInfo_v2", &LinkRemote);
  find("nvmlDeviceGetNvLinkRemoteDeviceType", &LinkRemoteKind);
  find("nvmlDeviceGetTemperature", &Temperature);
  find("nvmlDeviceGetPowerUsage", &Power);
  find("nvmlDeviceGetEnforcedPowerLimit", &PowerLimit);
  find("nvmlDeviceGetClockInfo", &Clock);
  find("nvmlDeviceGetMaxClockInfo", &MostClock);
  find("nvmlDeviceGetCurrentClocksThrottleReasons", &Throttling);
  find("nvmlDeviceGetTotalEccErrors", &EccErrors);
  find("nvmlDeviceGetPersistenceMode", &Persistence);
  find("nvmlDeviceGetComputeMode", &ComputeMode);
  find("nvmlDeviceGetMigMode", &MigMode);
  find("nvmlDeviceGetP2PStatus", &PeerStatus);
  find("nvmlDeviceGetTopologyCommonAncestor", &CommonAncestor);
  find("nvmlDeviceGetGpuFabricInfo", &FabricInfo);
  return Init != nullptr && Shutdown != nullptr && Count != nullptr && ByIndex != nullptr;
}

}  // namespace diapason::host
