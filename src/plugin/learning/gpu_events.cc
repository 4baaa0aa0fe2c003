#include "plugin/learning/gpu_events.h"

#include <dlfcn.h>

#include "plugin/learning/gpu_memory.h"

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

template <typename Function>
bool Load(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

const GpuEvents::Driver* GpuEvents::Find(Library library) {
  const bool amd = library == Library::kRccl;
  void* handle = LoadedDriver(library);
  if (handle == nullptr) return nullptr;
  // Never freed: the driver stays loaded until the process ends.
  auto driver = std::make_unique<Driver>();
  driver->amd = amd;
  const bool complete =
      amd ? Load(handle, "hipGetDevice", &driver->get_device) &&
                Load(handle, "hipSetDevice", &driver->set_device) &&
                Load(handle, "hipThreadExchangeStreamCaptureMode", &driver->exchange_mode) &&
                Load(handle, "hipEventCreateWithFlags", &driver->create) &&
                Load(handle, "hipEventDestroy", &driver->destroy) &&
                Load(handle, "hipEventRecord", &driver->record) &&
                Load(handle, "hipEventQuery", &driver->query) &&
                Load(handle, "hipEventElapsedTime", &driver->elapsed)
          : Load(handle, "cuCtxGetCurrent", &driver->get_current) &&
                Load(handle, "cuCtxSetCurrent", &driver->set_current) &&
                Load(handle, "cuThreadExchangeStreamCaptureMode", &driver->exchange_mode) &&
                Load(handle, "cuEventCreate", &driver->create) &&
                Load(handle, "cuEventDestroy_v2", &driver->destroy) &&
                Load(handle, "cuEventRecord", &driver->record) &&
                Load(handle, "cuEventQuery", &driver->query) &&
                Load(handle, "cuEventElapsedTime", &driver->elapsed);
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

void GpuEvents::Discard(int index) noexcept {
  pairs_[index].used.store(false, std::memory_order_release);
}

}  // namespace diapason::plugin
