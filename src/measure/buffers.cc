#include "measure/buffers.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/text.h"
#include "base/units.h"
#include "comm/backend_facts.h"

namespace diapason::measure {
namespace {

constexpr size_t kAlignment = 4096;
// A copy of a few gigabytes takes a second; one that takes this long never ends.
constexpr std::chrono::seconds kCopyLimit{60};

}  // namespace

Result<std::unique_ptr<MeasureBuffers>> MeasureBuffers::For(const Group& group) {
  const auto gpus = comm::FactsOfBackend(group.backend()).gpus;
  if (gpus == nullptr) return std::make_unique<MeasureBuffers>(nullptr, 0);
  ASSIGN_OR_RETURN(comm::gpu::Runtime* const runtime, gpus());
  // The device the backend has taken: see backends/nccl/backend.cc.
  const int device = group.local_rank() % runtime->DeviceCount();
  return std::make_unique<MeasureBuffers>(runtime, device);
}

MeasureBuffers::~MeasureBuffers() {
  if (runtime_ == nullptr) {
    Release();
    return;
  }
  const comm::gpu::Bound bound(runtime_, device_);
  Release();
  if (event_ != nullptr) runtime_->DestroyEvent(event_);
  if (stream_ != nullptr) runtime_->DestroyStream(stream_);
}

void MeasureBuffers::Release() {
  for (char** buffer : {&in_, &out_}) {
    if (*buffer == nullptr) continue;
    if (runtime_ == nullptr) {
      std::free(*buffer);
    } else {
      runtime_->Free(*buffer);
    }
    *buffer = nullptr;
  }
  bytes_ = 0;
}

Status MeasureBuffers::Reserve(size_t bytes) {
  if (bytes <= bytes_) return {};
  if (runtime_ == nullptr) {
    Release();
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    for (char** buffer : {&in_, &out_}) {
      *buffer = static_cast<char*>(std::aligned_alloc(kAlignment, rounded));
      if (*buffer == nullptr) {
        Release();
        return Unavailable("no memory for two buffers of " + FormatBytes(bytes));
      }
      // Touched now, so that no measurement pays for the first use of a page.
      std::memset(*buffer, 0, rounded);
    }
    bytes_ = rounded;
    return {};
  }
  const comm::gpu::Bound bound(runtime_, device_);
  if (!bound.status().ok()) return bound.status();
  if (stream_ == nullptr) {
    ASSIGN_OR_RETURN(void* const stream, runtime_->CreateStream());
    stream_ = stream;
    ASSIGN_OR_RETURN(void* const event, runtime_->CreateEvent());
    event_ = event;
  }
  Release();
  for (char** buffer : {&in_, &out_}) {
    const Result<void*> memory = runtime_->Allocate(bytes);
    if (!memory.ok()) {
      Release();
      return memory.status().WithContext("two buffers of " + FormatBytes(bytes) + " on the GPU");
    }
    *buffer = static_cast<char*>(memory.value());
  }
  bytes_ = bytes;
  return {};
}

Status MeasureBuffers::CopyAndWait(void* to, const void* from, size_t bytes) {
  if (runtime_ == nullptr) {
    std::memcpy(to, from, bytes);
    return {};
  }
  const comm::gpu::Bound bound(runtime_, device_);
  if (!bound.status().ok()) return bound.status();
  Status status = runtime_->Copy(to, from, bytes, stream_);
  if (status.ok()) status = runtime_->RecordEvent(event_, stream_);
  if (!status.ok()) return status;
  const auto deadline = std::chrono::steady_clock::now() + kCopyLimit;
  while (true) {
    ASSIGN_OR_RETURN(const bool done, runtime_->EventDone(event_));
    if (done) return {};
    if (std::chrono::steady_clock::now() > deadline) {
      return TimedOut("a copy of " + FormatBytes(bytes) + " to or from the GPU has not ended");
    }
    std::this_thread::yield();
  }
}

Status MeasureBuffers::Upload(void* to, const void* host, size_t bytes) {
  return CopyAndWait(to, host, bytes);
}
Status MeasureBuffers::Download(void* host, const void* from, size_t bytes) {
  return CopyAndWait(host, from, bytes);
}

}  // namespace diapason::measure
