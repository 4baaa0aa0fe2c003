#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "comm/gpu/symbols.h"

namespace diapason::comm::gpu {

// The part of CUDA's driver interface that is used, declared here so that building needs no CUDA.
// The numbers are part of the driver's binary interface and never change.
struct CudaDriver {
  using Result = int;
  using Device = int;
  using Address = unsigned long long;
  struct Uuid {
    unsigned char bytes[16];
  };

  static constexpr Result kSuccess = 0;
  static constexpr Result kInvalidContext = 201;
  static constexpr Result kNotReady = 600;
  static constexpr int kAttributeMemoryType = 2;
  static constexpr int kAttributeIsManaged = 8;
  static constexpr unsigned kMemoryTypeDevice = 2;
  static constexpr unsigned kNonBlockingStream = 1;
  static constexpr int kCaptureNone = 0;
  static constexpr int kCaptureModeRelaxed = 2;
  static constexpr int kDeviceMultiprocessors = 16;

  Result (*Init)(unsigned);
  Result (*GetErrorName)(Result, const char**);
  Result (*GetErrorString)(Result, const char**);
  Result (*DeviceGetCount)(int*);
  Result (*DeviceGet)(Device*, int);
  Result (*DeviceGetName)(char*, int, Device);
  Result (*DeviceGetUuid)(Uuid*, Device);
  Result (*DeviceGetAttribute)(int*, int, Device);
  Result (*DevicePrimaryCtxRetain)(void**, Device);
  Result (*DevicePrimaryCtxGetState)(Device, unsigned*, int*);
  Result (*CtxGetCurrent)(void**);
  Result (*CtxSetCurrent)(void*);
  Result (*PointerGetAttribute)(void*, int, Address);
  Result (*MemAlloc)(Address*, size_t);
  Result (*MemFree)(Address);
  Result (*MemHostAlloc)(void**, size_t, unsigned);
  Result (*MemFreeHost)(void*);
  Result (*MemcpyAsync)(Address, Address, size_t, void*);
  Result (*StreamCreate)(void**, unsigned);
  Result (*StreamDestroy)(void*);
  Result (*StreamWaitEvent)(void*, void*, unsigned);
  Result (*StreamIsCapturing)(void*, int*);
  Result (*ThreadExchangeStreamCaptureMode)(int*);
  Result (*EventCreate)(void**, unsigned);
  Result (*EventDestroy)(void*);
  Result (*EventRecord)(void*, void*);
  Result (*EventQuery)(void*);
  Result (*EventElapsedTime)(float*, void*, void*);
  Result (*LaunchHostFunc)(void*, void (*)(void*), void*);
  Result (*ModuleLoadData)(void**, const void*);
  Result (*ModuleGetFunction)(void**, void*, const char*);
  Result (*LaunchKernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, void*, void**, void**);

  // The name of the first function that the library lacks, or "".
  std::string Load(void* library) {
    Symbols symbols(library);
    symbols.Find("cuInit", &Init);
    symbols.Find("cuGetErrorName", &GetErrorName);
    symbols.Find("cuGetErrorString", &GetErrorString);
    symbols.Find("cuDeviceGetCount", &DeviceGetCount);
    symbols.Find("cuDeviceGet", &DeviceGet);
    symbols.Find("cuDeviceGetName", &DeviceGetName);
    symbols.Find("cuDeviceGetUuid", &DeviceGetUuid);
    symbols.Find("cuDeviceGetAttribute", &DeviceGetAttribute);
    symbols.Find("cuDevicePrimaryCtxRetain", &DevicePrimaryCtxRetain);
    symbols.Find("cuDevicePrimaryCtxGetState", &DevicePrimaryCtxGetState);
    symbols.Find("cuCtxGetCurrent", &CtxGetCurrent);
    symbols.Find("cuCtxSetCurrent", &CtxSetCurrent);
    symbols.Find("cuPointerGetAttribute", &PointerGetAttribute);
    symbols.Find("cuMemAlloc_v2", &MemAlloc);
    symbols.Find("cuMemFree_v2", &MemFree);
    symbols.Find("cuMemHostAlloc", &MemHostAlloc);
    symbols.Find("cuMemFreeHost", &MemFreeHost);
    symbols.Find("cuMemcpyAsync", &MemcpyAsync);
    symbols.Find("cuStreamCreate", &StreamCreate);
    symbols.Find("cuStreamDestroy_v2", &StreamDestroy);
    symbols.Find("cuStreamWaitEvent", &StreamWaitEvent);
    symbols.Find("cuStreamIsCapturing", &StreamIsCapturing);
    symbols.Find("cuThreadExchangeStreamCaptureMode", &ThreadExchangeStreamCaptureMode);
    symbols.Find("cuEventCreate", &EventCreate);
    symbols.Find("cuEventDestroy_v2", &EventDestroy);
    symbols.Find("cuEventRecord", &EventRecord);
    symbols.Find("cuEventQuery", &EventQuery);
    symbols.Find("cuEventElapsedTime", &EventElapsedTime);
    symbols.Find("cuLaunchHostFunc", &LaunchHostFunc);
    symbols.Find("cuModuleLoadData", &ModuleLoadData);
    symbols.Find("cuModuleGetFunction", &ModuleGetFunction);
    symbols.Find("cuLaunchKernel", &LaunchKernel);
    return symbols.missing();
  }
};

}  // namespace diapason::comm::gpu
