// GPU memory for the conformance program, through the driver's own interface.
#pragma once

#include <cstddef>
#include <string>

namespace diapason::conformance {

// "" when device `index` (modulo those there are) is ready for this thread, else why not.
std::string BindDevice(int index);
// Null when there is no memory. REQUIRES (of all below): BindDevice gave "".
void* DeviceAllocate(size_t bytes);
void DeviceFree(void* pointer);
bool DeviceUpload(void* device, const void* host, size_t bytes);
bool DeviceDownload(void* host, const void* device, size_t bytes);

}  // namespace diapason::conformance
