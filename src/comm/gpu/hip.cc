#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/text.h"
#include "comm/gpu/compute_kernel.h"
#include "comm/gpu/hip_compiler.h"
#include "comm/gpu/runtime.h"
#include "comm/gpu/symbols.h"

namespace diapason::comm::gpu {
namespace {

// The part of HIP's runtime interface that is used, declared here so that building needs no ROCm.
struct HipApi {
  using Error = int;

  static constexpr Error kSuccess = 0;
  static constexpr Error kNotReady = 600;
  static constexpr int kMemcpyDefault = 4;
  static constexpr unsigned kNonBlockingStream = 1;
  static constexpr int kCaptureNone = 0;
  static constexpr int kCaptureModeRelaxed = 2;
  static constexpr int kDeviceMultiprocessors = 63;  // since ROCm 5
  // ROCm 6 renumbered the kinds of memory.
  static constexpr int kFirstRenumberedVersion = 60000000;

  Error (*Init)(unsigned);
  const char* (*GetErrorString)(Error);
  Error (*RuntimeGetVersion)(int*);
  Error (*GetDeviceCount)(int*);
  Error (*DeviceGetName)(char*, int, int);
  Error (*DeviceGetPCIBusId)(char*, int, int);
  Error (*DeviceGetAttribute)(int*, int, int);
  Error (*SetDevice)(int);
  Error (*GetDevice)(int*);
  Error (*GetLastError)();
  Error (*PointerGetAttributes)(void*, const void*);
  Error (*Malloc)(void**, size_t);
  Error (*Free)(void*);
  Error (*HostMalloc)(void**, size_t, unsigned);
  Error (*HostFree)(void*);
  Error (*MemcpyAsync)(void*, const void*, size_t, int, void*);
  Error (*StreamCreateWithFlags)(void**, unsigned);
  Error (*StreamDestroy)(void*);
  Error (*StreamWaitEvent)(void*, void*, unsigned);
  Error (*StreamIsCapturing)(void*, int*);
  Error (*ThreadExchangeStreamCaptureMode)(int*);
  Error (*EventCreate)(void**);
  Error (*EventDestroy)(void*);
  Error (*EventRecord)(void*, void*);
  Error (*EventQuery)(void*);
  Error (*EventElapsedTime)(float*, void*, void*);
  Error (*LaunchHostFunc)(void*, void (*)(void*), void*);
  Error (*ModuleLoadData)(void**, const void*);
  Error (*ModuleGetFunction)(void**, void*, const char*);
  Error (*ModuleLaunchKernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, void*, void**, void**);

  // The name of the first function that the library lacks, or "".
  std::string Load(void* library) {
    Symbols symbols(library);
    symbols.Find("hipInit", &Init);
    symbols.Find("hipGetErrorString", &GetErrorString);
    symbols.Find("hipRuntimeGetVersion", &RuntimeGetVersion);
    symbols.Find("hipGetDeviceCount", &GetDeviceCount);
    symbols.Find("hipDeviceGetName", &DeviceGetName);
    symbols.Find("hipDeviceGetPCIBusId", &DeviceGetPCIBusId);
    symbols.Find("hipDeviceGetAttribute", &DeviceGetAttribute);
    symbols.Find("hipSetDevice", &SetDevice);
    symbols.Find("hipGetDevice", &GetDevice);
    symbols.Find("hipGetLastError", &GetLastError);
    symbols.Find("hipPointerGetAttributes", &PointerGetAttributes);
    symbols.Find("hipMalloc", &Malloc);
    symbols.Find("hipFree", &Free);
    symbols.Find("hipHostMalloc", &HostMalloc);
    symbols.Find("hipHostFree", &HostFree);
    symbols.Find("hipMemcpyAsync", &MemcpyAsync);
    symbols.Find("hipStreamCreateWithFlags", &StreamCreateWithFlags);
    symbols.Find("hipStreamDestroy", &StreamDestroy);
    symbols.Find("hipStreamWaitEvent", &StreamWaitEvent);
    symbols.Find("hipStreamIsCapturing", &StreamIsCapturing);
    symbols.Find("hipThreadExchangeStreamCaptureMode", &ThreadExchangeStreamCaptureMode);
    symbols.Find("hipEventCreate", &EventCreate);
    symbols.Find("hipEventDestroy", &EventDestroy);
    symbols.Find("hipEventRecord", &EventRecord);
    symbols.Find("hipEventQuery", &EventQuery);
    symbols.Find("hipEventElapsedTime", &EventElapsedTime);
    symbols.Find("hipLaunchHostFunc", &LaunchHostFunc);
    symbols.Find("hipModuleLoadData", &ModuleLoadData);
    symbols.Find("hipModuleGetFunction", &ModuleGetFunction);
    symbols.Find("hipModuleLaunchKernel", &ModuleLaunchKernel);
    return symbols.missing();
  }
};

// Larger than that of any version; all begin with the kind of memory.
struct PointerAttributes {
  int kind = 0;
  std::array<char, 124> rest{};
};

class HipRuntime : public Runtime {
 public:
  explicit HipRuntime(const HipApi& api) : api_(api) {}

  Status Begin() {
    RETURN_IF_ERROR(Check(api_.Init(0), "hipInit"));
    RETURN_IF_ERROR(Check(api_.GetDeviceCount(&devices_), "hipGetDeviceCount"));
    if (devices_ == 0) return Unavailable("the AMD driver shows no GPU");
    return Check(api_.RuntimeGetVersion(&version_), "hipRuntimeGetVersion");
  }

  int DeviceCount() const override { return devices_; }
  std::string DeviceName(int device) const override {
    std::array<char, 256> name{};
    const auto error = api_.DeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device);
    return error == HipApi::kSuccess && name[0] != '\0' ? name.data() : "AMD GPU";
  }
  std::string DeviceId(int device) const override {
    std::array<char, 64> id{};
    const auto error = api_.DeviceGetPCIBusId(id.data(), static_cast<int>(id.size()) - 1, device);
    return error == HipApi::kSuccess ? id.data() : Format("device-{}", device);
  }
  Status Bind(int device) override { return Check(api_.SetDevice(device), "hipSetDevice"); }
  void* Current() const override {
    int device = 0;
    api_.GetDevice(&device);
    return reinterpret_cast<void*>(static_cast<intptr_t>(device));
  }
  void Restore(void* current) override {
    api_.SetDevice(static_cast<int>(reinterpret_cast<intptr_t>(current)));
  }

  bool IsDevicePointer(const void* pointer) const override {
    PointerAttributes attributes;
    if (api_.PointerGetAttributes(&attributes, pointer) != HipApi::kSuccess) {
      // Ordinary host memory; clears the error, so that the program does not see it.
      api_.GetLastError();
      return false;
    }
    const bool renumbered = version_ >= HipApi::kFirstRenumberedVersion;
    const int device = renumbered ? 2 : 1;
    const int managed = renumbered ? 3 : 4;
    return attributes.kind == device || attributes.kind == managed;
  }
  Result<void*> Allocate(size_t bytes) override {
    const RelaxedCapture relaxed(api_);
    void* pointer = nullptr;
    Status status = Check(api_.Malloc(&pointer, bytes), "hipMalloc");
    if (!status.ok()) return status.WithContext(Format("{} bytes of GPU memory", bytes));
    return pointer;
  }
  void Free(void* pointer) override {
    const RelaxedCapture relaxed(api_);
    api_.Free(pointer);
  }
  Result<void*> AllocatePinned(size_t bytes) override {
    const RelaxedCapture relaxed(api_);
    void* pointer = nullptr;
    Status status = Check(api_.HostMalloc(&pointer, bytes, 0), "hipHostMalloc");
    if (!status.ok()) return status.WithContext(Format("{} bytes of pinned memory", bytes));
    return pointer;
  }
  void FreePinned(void* pointer) override {
    const RelaxedCapture relaxed(api_);
    api_.HostFree(pointer);
  }

  Result<void*> CreateStream() override {
    void* stream = nullptr;
    RETURN_IF_ERROR(Check(api_.StreamCreateWithFlags(&stream, HipApi::kNonBlockingStream),
                          "hipStreamCreateWithFlags"));
    return stream;
  }
  void DestroyStream(void* stream) override { api_.StreamDestroy(stream); }
  Status FollowDefault(void* stream, void* event) override {
    RETURN_IF_ERROR(Check(api_.EventRecord(event, nullptr), "hipEventRecord"));
    return Check(api_.StreamWaitEvent(stream, event, 0), "hipStreamWaitEvent");
  }
  Status WaitForEvent(void* stream, void* event) override {
    return Check(api_.StreamWaitEvent(stream, event, 0), "hipStreamWaitEvent");
  }
  bool IsCapturing(void* stream) const override {
    int state = HipApi::kCaptureNone;
    return api_.StreamIsCapturing(stream, &state) == HipApi::kSuccess &&
           state != HipApi::kCaptureNone;
  }
  Status Copy(void* out, const void* in, size_t bytes, void* stream) override {
    return Check(api_.MemcpyAsync(out, in, bytes, HipApi::kMemcpyDefault, stream),
                 "hipMemcpyAsync");
  }
  Status CallHost(void (*function)(void*), void* argument, void* stream) override {
    return Check(api_.LaunchHostFunc(stream, function, argument), "hipLaunchHostFunc");
  }

  Result<void*> CreateEvent() override {
    void* event = nullptr;
    RETURN_IF_ERROR(Check(api_.EventCreate(&event), "hipEventCreate"));
    return event;
  }
  void DestroyEvent(void* event) override { api_.EventDestroy(event); }
  Status RecordEvent(void* event, void* stream) override {
    return Check(api_.EventRecord(event, stream), "hipEventRecord");
  }
  Result<bool> EventDone(void* event) override {
    const RelaxedCapture relaxed(api_);
    const auto error = api_.EventQuery(event);
    if (error == HipApi::kNotReady) return false;
    RETURN_IF_ERROR(Check(error, "hipEventQuery"));
    return true;
  }
  Result<double> Elapsed(void* from, void* to) override {
    float milliseconds = 0;
    RETURN_IF_ERROR(Check(api_.EventElapsedTime(&milliseconds, from, to), "hipEventElapsedTime"));
    return static_cast<double>(milliseconds) / 1e3;
  }

  // AMD's driver has no portable assembly: kernels would have to be built for every kind of GPU.
  bool Converts() const override { return false; }
  Status Convert(void* /*out*/, DataType /*out_type*/, const void* /*in*/, DataType /*in_type*/,
                 size_t /*count*/, void* /*stream*/) override {
    return Unavailable("types are not converted on AMD GPUs");
  }

  Status Compute(uint32_t rounds, void* stream) override {
    ASSIGN_OR_RETURN(const ComputeKernel kernel, ComputeKernelOfDevice());
    void* arguments[] = {&rounds};
    return Check(api_.ModuleLaunchKernel(kernel.function, kernel.blocks, 1, 1, kComputeThreads, 1,
                                         1, 0, stream, arguments, nullptr),
                 "hipModuleLaunchKernel");
  }

 private:
  struct ComputeKernel {
    int device = 0;
    void* function = nullptr;
    unsigned blocks = 0;
  };

  // As in cuda.cc: avoids invalidating a graph capture.
  class RelaxedCapture {
   public:
    explicit RelaxedCapture(const HipApi& api) : api_(api) {
      api_.ThreadExchangeStreamCaptureMode(&mode_);
    }
    ~RelaxedCapture() { api_.ThreadExchangeStreamCaptureMode(&mode_); }
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

   private:
    const HipApi& api_;
    int mode_ = HipApi::kCaptureModeRelaxed;
  };

  // Compiled for the bound device at its first use.
  Result<ComputeKernel> ComputeKernelOfDevice() {
    ComputeKernel kernel;
    Status status = Check(api_.GetDevice(&kernel.device), "hipGetDevice");
    if (!status.ok()) return status;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const ComputeKernel& known : compute_kernels_) {
      if (known.device == kernel.device) return known;
    }
    int multiprocessors = 0;
    status = Check(
        api_.DeviceGetAttribute(&multiprocessors, HipApi::kDeviceMultiprocessors, kernel.device),
        "hipDeviceGetAttribute");
    if (!status.ok()) return status;
    kernel.blocks = kComputeBlocks * static_cast<unsigned>(std::max(1, multiprocessors));
    const Result<std::string> code = CompileHip(ComputeHip(), "diapason_compute.hip");
    if (!code.ok()) return code.status().WithContext("the compute kernel");
    const RelaxedCapture relaxed(api_);
    void* module = nullptr;
    status = Check(api_.ModuleLoadData(&module, code.value().data()), "hipModuleLoadData");
    if (status.ok()) {
      status = Check(api_.ModuleGetFunction(&kernel.function, module, kComputeKernel),
                     "hipModuleGetFunction");
    }
    if (!status.ok()) return status.WithContext("the compute kernel");
    compute_kernels_.push_back(kernel);
    return kernel;
  }

  Status Check(HipApi::Error error, const char* call) const {
    if (error == HipApi::kSuccess) return Status();
    return Internal(Format("{}: {}", call, api_.GetErrorString(error)));
  }

  HipApi api_;
  int devices_ = 0;
  int version_ = 0;
  std::mutex mutex_;
  std::vector<ComputeKernel> compute_kernels_;
};

Result<Runtime*> Open() {
  void* library = nullptr;
  for (const char* name :
       {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) return Unavailable("no ROCm: libamdhip64.so cannot be opened");
  HipApi api{};
  if (const std::string missing = api.Load(library); !missing.empty()) {
    return Unavailable("ROCm is too old: libamdhip64.so has no " + missing);
  }
  // Never freed: other threads may use it when the program ends.
  auto* runtime = new HipRuntime(api);
  if (Status status = runtime->Begin(); !status.ok()) {
    delete runtime;
    return Unavailable(status.message());
  }
  return runtime;
}

}  // namespace

Result<Runtime*> Hip() {
  static const Result<Runtime*> runtime = Open();
  return runtime;
}

}  // namespace diapason::comm::gpu
