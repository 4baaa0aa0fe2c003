#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "base/text.h"
#include "comm/gpu/compute_kernel.h"
#include "comm/gpu/convert_ptx.h"
#include "comm/gpu/cuda_driver.h"
#include "comm/gpu/runtime.h"

namespace diapason::comm::gpu {
namespace {

constexpr unsigned kThreadsPerBlock = 256;
constexpr size_t kMostBlocks = 4096;

CudaDriver::Address Address(const void* pointer) {
  return reinterpret_cast<CudaDriver::Address>(pointer);
}

class CudaRuntime : public Runtime {
 public:
  explicit CudaRuntime(const CudaDriver& driver) : driver_(driver) {}

  // cuInit and the list of devices. The error says why none can be used.
  Status Begin();

  int DeviceCount() const override { return static_cast<int>(devices_.size()); }
  std::string DeviceName(int device) const override;
  std::string DeviceId(int device) const override;
  Status Bind(int device) override;
  void* Current() const override;
  void Restore(void* current) override { driver_.CtxSetCurrent(current); }

  bool IsDevicePointer(const void* pointer) const override;
  Result<void*> Allocate(size_t bytes) override;
  void Free(void* pointer) override;
  Result<void*> AllocatePinned(size_t bytes) override;
  void FreePinned(void* pointer) override;

  Result<void*> CreateStream() override;
  void DestroyStream(void* stream) override { driver_.StreamDestroy(stream); }
  Status FollowDefault(void* stream, void* event) override;
  Status WaitForEvent(void* stream, void* event) override;
  bool IsCapturing(void* stream) const override;
  Status Copy(void* out, const void* in, size_t bytes, void* stream) override;
  Status CallHost(void (*function)(void*), void* argument, void* stream) override;

  Result<void*> CreateEvent() override;
  void DestroyEvent(void* event) override { driver_.EventDestroy(event); }
  Status RecordEvent(void* event, void* stream) override;
  Result<bool> EventDone(void* event) override;
  Result<double> Elapsed(void* from, void* to) override;

  bool Converts() const override { return true; }
  Status Convert(void* out, DataType out_type, const void* in, DataType in_type, size_t count,
                 void* stream) override;
  Status Compute(uint32_t rounds, void* stream) override;

 private:
  struct Device {
    CudaDriver::Device handle = 0;
    void* context = nullptr;  // retained at the first use and kept, as CUDA's own runtime does
  };
  // In the order of kKernelNames below.
  using Kernels = std::array<void*, 4>;
  struct ComputeKernel {
    void* context = nullptr;
    void* function = nullptr;
    unsigned blocks = 0;
  };

  Status Check(CudaDriver::Result result, const char* call) const;
  Result<void*> ContextOf(int device);
  CudaDriver::Result Attribute(void* value, int attribute, const void* pointer) const;
  Result<Kernels> KernelsOf(void* context);
  Result<ComputeKernel> ComputeKernelOf(void* context);

  CudaDriver driver_;
  std::mutex mutex_;
  std::vector<Device> devices_;
  std::vector<std::pair<void*, Kernels>> kernels_;
  std::vector<ComputeKernel> compute_kernels_;
};

constexpr std::array<const char*, 4> kKernelNames = {"f32_to_bf16", "bf16_to_f32", "f32_to_f16",
                                                     "f16_to_f32"};

// While the program captures a graph, on any thread, an allocation or even an event query
// invalidates the capture, unless this thread has set the relaxed capture mode.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const CudaDriver& driver) : driver_(driver) {
    driver_.ThreadExchangeStreamCaptureMode(&mode_);
  }
  ~RelaxedCapture() { driver_.ThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const CudaDriver& driver_;
  int mode_ = CudaDriver::kCaptureModeRelaxed;
};

Status CudaRuntime::Check(CudaDriver::Result result, const char* call) const {
  if (result == CudaDriver::kSuccess) return Status();
  const char* text = nullptr;
  driver_.GetErrorString(result, &text);
  return Internal(text != nullptr ? Format("{}: {}", call, text)
                                  : Format("{}: CUDA error {}", call, result));
}

Status CudaRuntime::Begin() {
  RETURN_IF_ERROR(Check(driver_.Init(0), "cuInit"));
  int count = 0;
  RETURN_IF_ERROR(Check(driver_.DeviceGetCount(&count), "cuDeviceGetCount"));
  if (count == 0) return Unavailable("the NVIDIA driver shows no GPU");
  for (int i = 0; i < count; ++i) {
    Device device;
    RETURN_IF_ERROR(Check(driver_.DeviceGet(&device.handle, i), "cuDeviceGet"));
    devices_.push_back(device);
  }
  return Status();
}

std::string CudaRuntime::DeviceName(int device) const {
  std::array<char, 256> name{};
  const auto result = driver_.DeviceGetName(name.data(), static_cast<int>(name.size()) - 1,
                                            devices_[static_cast<size_t>(device)].handle);
  return result == CudaDriver::kSuccess ? name.data() : "NVIDIA GPU";
}

std::string CudaRuntime::DeviceId(int device) const {
  CudaDriver::Uuid uuid{};
  if (driver_.DeviceGetUuid(&uuid, devices_[static_cast<size_t>(device)].handle) !=
      CudaDriver::kSuccess) {
    return Format("device-{}", device);
  }
  std::string text = "GPU";
  for (size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += Format("{:02x}", uuid.bytes[i]);
  }
  return text;
}

Result<void*> CudaRuntime::ContextOf(int device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Device& one = devices_[static_cast<size_t>(device)];
  if (one.context == nullptr) {
    RETURN_IF_ERROR(Check(driver_.DevicePrimaryCtxRetain(&one.context, one.handle),
                          "cuDevicePrimaryCtxRetain"));
  }
  return one.context;
}

Status CudaRuntime::Bind(int device) {
  if (device < 0 || device >= DeviceCount()) {
    return Invalid(Format("there is no GPU {}; there are {}", device, DeviceCount()));
  }
  ASSIGN_OR_RETURN(void* const context, ContextOf(device));
  return Check(driver_.CtxSetCurrent(context), "cuCtxSetCurrent");
}

void* CudaRuntime::Current() const {
  void* context = nullptr;
  driver_.CtxGetCurrent(&context);
  return context;
}

CudaDriver::Result CudaRuntime::Attribute(void* value, int attribute, const void* pointer) const {
  const auto result = driver_.PointerGetAttribute(value, attribute, Address(pointer));
  if (result != CudaDriver::kInvalidContext) return result;
  // This thread has no context. If the process has none either, it has no device memory; any active
  // one will do, as all share one address space.
  for (const Device& device : devices_) {
    unsigned flags = 0;
    int active = 0;
    void* context = nullptr;
    if (driver_.DevicePrimaryCtxGetState(device.handle, &flags, &active) != CudaDriver::kSuccess ||
        active == 0 ||
        driver_.DevicePrimaryCtxRetain(&context, device.handle) != CudaDriver::kSuccess) {
      continue;
    }
    driver_.CtxSetCurrent(context);
    const auto again = driver_.PointerGetAttribute(value, attribute, Address(pointer));
    driver_.CtxSetCurrent(nullptr);
    return again;
  }
  return result;
}

bool CudaRuntime::IsDevicePointer(const void* pointer) const {
  unsigned type = 0;
  // The driver reports an error for memory it does not know: ordinary host memory.
  if (Attribute(&type, CudaDriver::kAttributeMemoryType, pointer) != CudaDriver::kSuccess) {
    return false;
  }
  if (type == CudaDriver::kMemoryTypeDevice) return true;
  unsigned managed = 0;
  return Attribute(&managed, CudaDriver::kAttributeIsManaged, pointer) == CudaDriver::kSuccess &&
         managed != 0;
}

Result<void*> CudaRuntime::Allocate(size_t bytes) {
  const RelaxedCapture relaxed(driver_);
  CudaDriver::Address address = 0;
  Status status = Check(driver_.MemAlloc(&address, bytes), "cuMemAlloc");
  if (!status.ok()) return status.WithContext(Format("{} bytes of GPU memory", bytes));
  return reinterpret_cast<void*>(address);
}

Result<void*> CudaRuntime::AllocatePinned(size_t bytes) {
  const RelaxedCapture relaxed(driver_);
  void* pointer = nullptr;
  Status status = Check(driver_.MemHostAlloc(&pointer, bytes, 0), "cuMemHostAlloc");
  if (!status.ok()) return status.WithContext(Format("{} bytes of pinned memory", bytes));
  return pointer;
}

void CudaRuntime::Free(void* pointer) {
  const RelaxedCapture relaxed(driver_);
  driver_.MemFree(Address(pointer));
}

void CudaRuntime::FreePinned(void* pointer) {
  const RelaxedCapture relaxed(driver_);
  driver_.MemFreeHost(pointer);
}

Result<void*> CudaRuntime::CreateStream() {
  void* stream = nullptr;
  RETURN_IF_ERROR(
      Check(driver_.StreamCreate(&stream, CudaDriver::kNonBlockingStream), "cuStreamCreate"));
  return stream;
}

Status CudaRuntime::FollowDefault(void* stream, void* event) {
  RETURN_IF_ERROR(Check(driver_.EventRecord(event, nullptr), "cuEventRecord"));
  return Check(driver_.StreamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
}

Status CudaRuntime::WaitForEvent(void* stream, void* event) {
  return Check(driver_.StreamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
}

bool CudaRuntime::IsCapturing(void* stream) const {
  int state = CudaDriver::kCaptureNone;
  return driver_.StreamIsCapturing(stream, &state) == CudaDriver::kSuccess &&
         state != CudaDriver::kCaptureNone;
}

Status CudaRuntime::Copy(void* out, const void* in, size_t bytes, void* stream) {
  return Check(driver_.MemcpyAsync(Address(out), Address(in), bytes, stream), "cuMemcpyAsync");
}

Status CudaRuntime::CallHost(void (*function)(void*), void* argument, void* stream) {
  return Check(driver_.LaunchHostFunc(stream, function, argument), "cuLaunchHostFunc");
}

Result<void*> CudaRuntime::CreateEvent() {
  void* event = nullptr;
  RETURN_IF_ERROR(Check(driver_.EventCreate(&event, 0), "cuEventCreate"));
  return event;
}

Status CudaRuntime::RecordEvent(void* event, void* stream) {
  return Check(driver_.EventRecord(event, stream), "cuEventRecord");
}

Result<bool> CudaRuntime::EventDone(void* event) {
  const RelaxedCapture relaxed(driver_);
  const auto result = driver_.EventQuery(event);
  if (result == CudaDriver::kNotReady) return false;
  RETURN_IF_ERROR(Check(result, "cuEventQuery"));
  return true;
}

Result<double> CudaRuntime::Elapsed(void* from, void* to) {
  float milliseconds = 0;
  RETURN_IF_ERROR(Check(driver_.EventElapsedTime(&milliseconds, from, to), "cuEventElapsedTime"));
  return static_cast<double>(milliseconds) / 1e3;
}

Result<CudaRuntime::Kernels> CudaRuntime::KernelsOf(void* context) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [known, kernels] : kernels_) {
    if (known == context) return kernels;
  }
  const RelaxedCapture relaxed(driver_);
  void* module = nullptr;
  Status status = Check(driver_.ModuleLoadData(&module, ConvertPtx().c_str()), "cuModuleLoadData");
  Kernels kernels{};
  for (size_t i = 0; status.ok() && i < kernels.size(); ++i) {
    status = Check(driver_.ModuleGetFunction(&kernels[i], module, kKernelNames[i]),
                   "cuModuleGetFunction");
  }
  if (!status.ok()) return status.WithContext("the conversion kernels");
  kernels_.emplace_back(context, kernels);
  return kernels;
}

Status CudaRuntime::Convert(void* out, DataType out_type, const void* in, DataType in_type,
                            size_t count, void* stream) {
  size_t kernel = kKernelNames.size();
  if (in_type == DataType::kF32 && out_type == DataType::kBf16) kernel = 0;
  if (in_type == DataType::kBf16 && out_type == DataType::kF32) kernel = 1;
  if (in_type == DataType::kF32 && out_type == DataType::kF16) kernel = 2;
  if (in_type == DataType::kF16 && out_type == DataType::kF32) kernel = 3;
  if (kernel == kKernelNames.size()) return Invalid("only f32 is converted, to bf16 or f16");
  if (count == 0) return Status();

  ASSIGN_OR_RETURN(const Kernels kernels, KernelsOf(Current()));
  uint64_t elements = count;
  void* arguments[] = {&out, &in, &elements};
  const size_t blocks = (count + kThreadsPerBlock - 1) / kThreadsPerBlock;
  return Check(
      driver_.LaunchKernel(kernels[kernel], static_cast<unsigned>(std::min(blocks, kMostBlocks)), 1,
                           1, kThreadsPerBlock, 1, 1, 0, stream, arguments, nullptr),
      "cuLaunchKernel");
}

Result<CudaRuntime::ComputeKernel> CudaRuntime::ComputeKernelOf(void* context) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const ComputeKernel& known : compute_kernels_) {
    if (known.context == context) return known;
  }
  const auto device = std::find_if(devices_.begin(), devices_.end(), [&](const Device& one) {
    return one.context != nullptr && one.context == context;
  });
  if (device == devices_.end()) return Invalid("no GPU is bound: there is none to compute on");
  ComputeKernel kernel;
  kernel.context = context;
  int multiprocessors = 0;
  Status status = Check(driver_.DeviceGetAttribute(
                            &multiprocessors, CudaDriver::kDeviceMultiprocessors, device->handle),
                        "cuDeviceGetAttribute");
  if (!status.ok()) return status;
  kernel.blocks = kComputeBlocks * static_cast<unsigned>(std::max(1, multiprocessors));
  const RelaxedCapture relaxed(driver_);
  void* module = nullptr;
  status = Check(driver_.ModuleLoadData(&module, ComputePtx()), "cuModuleLoadData");
  if (status.ok()) {
    status = Check(driver_.ModuleGetFunction(&kernel.function, module, kComputeKernel),
                   "cuModuleGetFunction");
  }
  if (!status.ok()) return status.WithContext("the compute kernel");
  compute_kernels_.push_back(kernel);
  return kernel;
}

Status CudaRuntime::Compute(uint32_t rounds, void* stream) {
  ASSIGN_OR_RETURN(const ComputeKernel kernel, ComputeKernelOf(Current()));
  void* arguments[] = {&rounds};
  return Check(driver_.LaunchKernel(kernel.function, kernel.blocks, 1, 1, kComputeThreads, 1, 1, 0,
                                    stream, arguments, nullptr),
               "cuLaunchKernel");
}

Result<Runtime*> Open() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Unavailable("no NVIDIA driver: libcuda.so.1 cannot be opened");
  }
  CudaDriver driver{};
  if (const std::string missing = driver.Load(library); !missing.empty()) {
    return Unavailable("the NVIDIA driver is too old: libcuda.so.1 has no " + missing);
  }
  // Never freed: other threads may use it when the program ends.
  auto* runtime = new CudaRuntime(driver);
  if (Status status = runtime->Begin(); !status.ok()) {
    delete runtime;
    return Unavailable(status.message());
  }
  return runtime;
}

}  // namespace

Result<Runtime*> Cuda() {
  static const Result<Runtime*> runtime = Open();
  return runtime;
}

}  // namespace diapason::comm::gpu
