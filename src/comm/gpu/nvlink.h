#pragma once

#include <string>

namespace diapason::comm::gpu {

// The bandwidth of all active NVLinks of a GPU together in one direction, in bytes per second; 0 if
// there are none or NVML does not report it. `id` is Runtime::DeviceId.
double NvlinkPeak(const std::string& id);

}  // namespace diapason::comm::gpu
