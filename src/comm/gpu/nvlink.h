#pragma once

#include <string>

namespace diapason::comm::gpu {

// What all NVLinks of a GPU that are up can carry together in one direction, in bytes per second; 0
// where there are none or NVIDIA's management library does not say. `id` is Runtime::DeviceId.
double NvlinkPeak(const std::string& id);

}  // namespace diapason::comm::gpu
