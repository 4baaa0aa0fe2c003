#include "plugin/learning/gpu_events.h"

#include <dlfcn.h>

namespace diapason::plugin {

// The functions that both drivers have; they differ in how they name the thread's GPU.
struct GpuEvents::Driver {
  static constexpr int kNotReady = 600;
  // The capture mode that does not affect other threads' captures.
  static constexpr int kRelaxed = 2;

  bool amd = false;
  int (*get_current)(void**) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*get_device)(int*) = nullptr;
  int (*set_device)(int) = nullptr;
  int (*exchange_mode)(int*) = nullptr;
  int (*create)(void**, unsigned) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*record)(void*, void*) = nullptr;
  int (*query)(void*) = nullptr;
  int (*elapsed)(float*, void*, void*) = nullptr;

  // Adds 1: device numbers start from 0, and nullptr means "not known yet".
  void* Current() const {
    if (amd) {
      int device = 0;
      return get_device(&device) == 0 ? reinterpret_cast<void*>(intptr_t{device} + 1) : nullptr;
    }
    void* context = nullptr;
    return get_current(&context) == 0 ? context : nullptr;
  }
  void MakeCurrent(void* device) const {
    if (amd) {
      set_device(static_cast<int>(reinterpret_cast<intptr_t>(device)) - 1);
    } else {
      set_current(device);
    }
  }
};

namespace {

// Querying an event while another thread captures a graph would invalidate that capture, unless the
// querying thread has set the relaxed capture mode.
template <class Driver>
class Unobtrusive {
 public:
  explicit Unobtrusive(const Driver& driver) : driver_(driver) { driver_.exchange_mode(&mode_); }
  ~Unobtrusive() { driver_.exchange_mode(&mode_); }
  Unobtrusive(const Unobtrusive&) = delete;
  Unobtrusive& operator=(const Unobtrusive&) = delete;

 private:
  const Driver& driver_;
  int mode_ = Driver::kRelaxed;
};

// The caller may close the handle or keep it.
void* LoadedDriver(Library library) {
  if (library != Library::kRccl) return dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  for (const char* name : {"libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.7"}) {
    if (void* driver = dlopen(name, RTLD_NOW | RTLD_NOLOAD); driver != nullptr) return driver;
  }
  return nullptr;
}

}  // namespace

std::optional<uint64_t> FreeGpuMemory(Library library) {
  using MemGetInfo = int (*)(size_t*, size_t*);
  const bool amd = library == Library::kRccl;
  void* driver = LoadedDriver(library);
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

const GpuEvents::Driver* GpuEvents::Find(Library library) {
  const bool amd = library == Library::kRccl;
  void* handle = LoadedDriver(library);
  if (handle == nullptr) return nullptr;
  // Never freed: the driver stays loaded until the process ends.
  auto driver = std::make_unique<Driver>();
  driver->amd = amd;
  const auto load = [&](const char* cuda, const char* hip, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(
        dlsym(handle, amd ? hip : cuda));
    return *function != nullptr;
  };
  const bool complete = (amd ? load("", "hipGetDevice", &driver->get_device) &&
                                   load("", "hipSetDevice", &driver->set_device)
                             : load("cuCtxGetCurrent", "", &driver->get_current) &&
                                   load("cuCtxSetCurrent", "", &driver->set_current)) &&
                        load("cuThreadExchangeStreamCaptureMode",
                             "hipThreadExchangeStreamCaptureMode", &driver->exchange_mode) &&
                        load("cuEventCreate", "hipEventCreateWithFlags", &driver->create) &&
                        load("cuEventDestroy_v2", "hipEventDestroy", &driver->destroy) &&
                        load("cuEventRecord", "hipEventRecord", &driver->record) &&
                        load("cuEventQuery", "hipEventQuery", &driver->query) &&
                        load("cuEventElapsedTime", "hipEventElapsedTime", &driver->elapsed);
  if (!complete) return nullptr;
  return driver.release();
}

std::unique_ptr<GpuEvents> GpuEvents::Make(Library library) {
  // Resolved once per process and library.
  static const Driver* const cuda = Find(Library::kNccl);
  static const Driver* const hip = Find(Library::kRccl);
  const Driver* driver = library == Library::kRccl ? hip : cuda;
  if (driver == nullptr) return nullptr;
  return std::unique_ptr<GpuEvents>(new GpuEvents(driver));
}

GpuEvents::~GpuEvents() {
  void* device = device_.load();
  if (device == nullptr) return;
  const Unobtrusive quiet(*driver_);
  void* before = driver_->Current();
  driver_->MakeCurrent(device);
  for (Pair& pair : pairs_) {
    if (pair.begin != nullptr) driver_->destroy(pair.begin);
    if (pair.end != nullptr) driver_->destroy(pair.end);
  }
  if (before != nullptr) driver_->MakeCurrent(before);
}

int GpuEvents::Begin(void* stream) noexcept {
  if (refused_.load(std::memory_order_relaxed)) return -1;
  const int index = next_;
  Pair& pair = pairs_[index];
  if (pair.used.load(std::memory_order_acquire)) return -1;
  const Unobtrusive quiet(*driver_);
  if (pair.end == nullptr) {
    void* current = driver_->Current();
    void* none = nullptr;
    device_.compare_exchange_strong(none, current);
    if (current == nullptr || current != device_.load() || driver_->create(&pair.begin, 0) != 0 ||
        driver_->create(&pair.end, 0) != 0) {
      refused_.store(true, std::memory_order_relaxed);
      return -1;
    }
  }
  if (driver_->record(pair.begin, stream) != 0) {
    refused_.store(true, std::memory_order_relaxed);
    return -1;
  }
  next_ = (index + 1) % kPairs;
  pair.used.store(true, std::memory_order_release);
  return index;
}

bool GpuEvents::End(int index, void* stream) noexcept {
  const Unobtrusive quiet(*driver_);
  if (driver_->record(pairs_[index].end, stream) == 0) return true;
  refused_.store(true, std::memory_order_relaxed);
  Discard(index);
  return false;
}

GpuEvents::State GpuEvents::Look(int index, double* seconds) noexcept {
  Pair& pair = pairs_[index];
  const Unobtrusive quiet(*driver_);
  driver_->MakeCurrent(device_.load());
  const int answer = driver_->query(pair.end);
  if (answer == Driver::kNotReady) return State::kRunning;
  float milliseconds = 0;
  const bool fine = answer == 0 && driver_->elapsed(&milliseconds, pair.begin, pair.end) == 0;
  Discard(index);
  *seconds = static_cast<double>(milliseconds) * 1e-3;
  return fine && milliseconds > 0 ? State::kDone : State::kFailed;
}

bool GpuEvents::Ended(int index) const noexcept {
  const Pair& pair = pairs_[index];
  // A pair is freed once its kernel was seen to have ended.
  if (!pair.used.load(std::memory_order_acquire)) return true;
  const Unobtrusive quiet(*driver_);
  return driver_->query(pair.end) == 0;
}

void GpuEvents::Discard(int index) noexcept {
  pairs_[index].used.store(false, std::memory_order_release);
}

}  // namespace diapason::plugin
