#include "comm/backends/nccl/staging.h"

#include <cstring>

#include "base/text.h"
#include "comm/check.h"

namespace diapason::comm::nccl {
namespace {

// The best alignment for GPUs, and enough for every type.
constexpr size_t kAlignment = 256;

size_t Reserve(size_t* total, size_t bytes) {
  const size_t offset = *total;
  *total += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return offset;
}

}  // namespace

bool Staging::IsHost(const void* pointer) const {
  switch (call_.memory) {
    case Memory::kHost:
      return true;
    case Memory::kDevice:
      return false;
    case Memory::kAuto:
      break;
  }
  return !workspace_->runtime()->IsDevicePointer(pointer);
}

Staging::Item Staging::Describe(const void* in, void* out, size_t count) const {
  Item item;
  item.in = in;
  item.out = out;
  item.count = count;
  Call call = call_;
  call.count = count;
  item.in_bytes = InCount(call, rank_, size_) * SizeOf(call_.type);
  item.out_bytes = OutCount(call, rank_, size_) * SizeOf(call_.type);
  return item;
}

void Staging::LayOut(size_t* staged_bytes, size_t* device_bytes) {
  *staged_bytes = 0;
  for (Item& item : items_) {
    if (item.in_bytes > 0 && IsHost(item.in)) item.in_staged = Reserve(staged_bytes, item.in_bytes);
    if (item.out_bytes > 0 && IsHost(item.out)) {
      item.out_staged = item.in_staged != kNone && !CountsAllRanks(call_.operation)
                            ? item.in_staged
                            : Reserve(staged_bytes, item.out_bytes);
    }
  }
  *device_bytes = *staged_bytes;
  if (!call_.wire.has_value()) return;
  for (Item& item : items_) item.wire = Reserve(device_bytes, item.count * SizeOf(*call_.wire));
}

Status Staging::CopyIn() {
  gpu::Runtime* runtime = workspace_->runtime();
  std::vector<HostGate::Copy> copies;
  for (const Item& item : items_) {
    if (item.in_staged != kNone) {
      copies.push_back({Pinned(item.in_staged), item.in, item.in_bytes});
    }
  }
  if (copies.empty()) return Status();
  if (stream_ == workspace_->stream() && workspace_->Idle()) {
    for (const HostGate::Copy& copy : copies) std::memcpy(copy.out, copy.in, copy.bytes);
  } else {
    // Earlier work in the stream may still write the data that is read here.
    RETURN_IF_ERROR(HostGate::Enqueue(workspace_->gate(), runtime, stream_, std::move(copies)));
  }
  for (const Item& item : items_) {
    if (item.in_staged == kNone) continue;
    RETURN_IF_ERROR(
        runtime->Copy(OnDevice(item.in_staged), Pinned(item.in_staged), item.in_bytes, stream_));
  }
  return Status();
}

Status Staging::Narrow() {
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    if (item.wire == kNone) continue;
    RETURN_IF_ERROR(workspace_->runtime()->Convert(OnDevice(item.wire), *call_.wire, parts_[i].in,
                                                   call_.type, item.count, stream_));
    parts_[i].in = parts_[i].out = OnDevice(item.wire);
  }
  return Status();
}

Status Staging::Before() {
  if (call_.tensors.empty()) {
    items_.push_back(Describe(call_.in, call_.out, call_.count));
  } else {
    for (const Tensor& tensor : call_.tensors) {
      if (tensor.count > 0) items_.push_back(Describe(tensor.in, tensor.out, tensor.count));
    }
  }
  size_t staged_bytes = 0;
  size_t device_bytes = 0;
  LayOut(&staged_bytes, &device_bytes);
  if (staged_bytes > 0 && flight_->captured) {
    return Unavailable("host memory cannot be part of a GPU graph: use GPU memory in the capture");
  }
  if (staged_bytes > 0) {
    ASSIGN_OR_RETURN(void* const pinned, workspace_->Pinned(flight_, staged_bytes));
    pinned_ = pinned;
  }
  if (device_bytes > 0) {
    ASSIGN_OR_RETURN(void* const device, workspace_->Device(flight_, device_bytes));
    device_ = device;
  }
  for (const Item& item : items_) {
    Part part;
    part.count = item.count;
    if (item.in_bytes > 0) part.in = item.in_staged != kNone ? OnDevice(item.in_staged) : item.in;
    if (item.out_bytes > 0) {
      part.out = item.out_staged != kNone ? OnDevice(item.out_staged) : item.out;
    }
    parts_.push_back(part);
  }
  RETURN_IF_ERROR(CopyIn());
  return Narrow();
}

Status Staging::After() {
  gpu::Runtime* runtime = workspace_->runtime();
  std::vector<HostGate::Copy> copies;
  for (const Item& item : items_) {
    if (item.out_bytes == 0) continue;
    const bool staged = item.out_staged != kNone;
    if (item.wire != kNone) {
      void* wide = staged ? OnDevice(item.out_staged) : item.out;
      RETURN_IF_ERROR(runtime->Convert(wide, call_.type, OnDevice(item.wire), *call_.wire,
                                       item.count, stream_));
    }
    if (!staged) continue;
    RETURN_IF_ERROR(
        runtime->Copy(Pinned(item.out_staged), OnDevice(item.out_staged), item.out_bytes, stream_));
    copies.push_back({item.out, Pinned(item.out_staged), item.out_bytes});
  }
  if (copies.empty()) return Status();
  return HostGate::Enqueue(workspace_->gate(), runtime, stream_, std::move(copies));
}

}  // namespace diapason::comm::nccl
