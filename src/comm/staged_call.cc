#include "comm/staged_call.h"

#include <cstring>
#include <thread>

#include "comm/check.h"
#include "comm/reduce.h"

namespace diapason::comm {
Result<std::unique_ptr<StagedCall>> StagedCall::Make(const Call& call, int rank, int ranks,
                                                     gpu::Runtime* runtime, int device,
                                                     Deadline deadline) {
  std::unique_ptr<StagedCall> prepared(new StagedCall);
  prepared->original_ = call;
  prepared->call_ = call;
  prepared->runtime_ = runtime;
  prepared->device_ = device;
  prepared->deadline_ = deadline;
  prepared->on_device_ = call.memory == Memory::kDevice;
  if (prepared->on_device_ && runtime == nullptr) {
    return Unavailable("the buffers are said to be on a GPU, and this process uses none");
  }
  RETURN_IF_ERROR(prepared->CopyIn(rank, ranks));
  return prepared;
}

Status StagedCall::Move(void* out, const void* in, size_t bytes) {
  if (bytes == 0) return {};
  if (!on_device_) {
    std::memcpy(out, in, bytes);
    return {};
  }
  const gpu::Bound bound(runtime_, device_);
  if (!bound.status().ok()) return bound.status();
  ASSIGN_OR_RETURN(void* const event, runtime_->CreateEvent());
  Status status = runtime_->Copy(out, in, bytes, original_.stream);
  if (status.ok()) status = runtime_->RecordEvent(event, original_.stream);
  while (status.ok()) {
    const Result<bool> done = runtime_->EventDone(event);
    if (!done.ok()) {
      status = done.status();
    } else if (done.value()) {
      break;
    } else if (std::chrono::steady_clock::now() >= deadline_) {
      status = TimedOut("the GPU has not finished what was in the stream before the call");
    } else {
      std::this_thread::yield();
    }
  }
  runtime_->DestroyEvent(event);
  return status;
}

Status StagedCall::CopyIn(int rank, int ranks) {
  std::span<const Tensor> parts = original_.tensors;
  if (parts.empty()) {
    count_in_ = InCount(original_, rank, ranks);
    count_out_ = OutCount(original_, rank, ranks);
  } else {
    for (const Tensor& part : parts) count_in_ += part.count;
    count_out_ = count_in_;
    call_.count = count_in_;
    call_.tensors = {};
  }
  const size_t width = SizeOf(original_.type);
  const bool narrow = original_.wire.has_value();
  const size_t sent_width = narrow ? SizeOf(*original_.wire) : width;

  std::vector<std::byte> wide;
  std::vector<std::byte>& gathered = narrow ? wide : in_;
  gathered.resize(count_in_ * width);
  if (parts.empty()) {
    RETURN_IF_ERROR(Move(gathered.data(), original_.in, gathered.size()));
  } else {
    size_t at = 0;
    for (const Tensor& part : parts) {
      RETURN_IF_ERROR(Move(gathered.data() + at, part.in, part.count * width));
      at += part.count * width;
    }
  }
  if (narrow) {
    in_.resize(count_in_ * sent_width);
    Narrow(*original_.wire, in_.data(), reinterpret_cast<const float*>(wide.data()), count_in_);
    call_.type = *original_.wire;
    call_.wire.reset();
  }
  call_.memory = Memory::kHost;
  call_.stream = nullptr;
  call_.in = in_.data();
  if (original_.operation == Operation::kAllReduce) {
    call_.out = in_.data();  // in place: saves one buffer
  } else {
    out_.resize(count_out_ * sent_width);
    call_.out = out_.data();
  }
  return {};
}

Status StagedCall::Finish() {
  if (count_out_ == 0) return {};
  const size_t width = SizeOf(original_.type);
  std::vector<std::byte>* result = original_.operation == Operation::kAllReduce ? &in_ : &out_;
  std::vector<std::byte> wide;
  if (original_.wire.has_value()) {
    wide.resize(count_out_ * width);
    Widen(*original_.wire, reinterpret_cast<float*>(wide.data()), result->data(), count_out_);
    result = &wide;
  }
  if (original_.tensors.empty()) return Move(original_.out, result->data(), count_out_ * width);
  size_t at = 0;
  for (const Tensor& part : original_.tensors) {
    RETURN_IF_ERROR(Move(part.out, result->data() + at, part.count * width));
    at += part.count * width;
  }
  return {};
}

}  // namespace diapason::comm
