#include "comm/backends/nccl/workspace.h"

#include <algorithm>
#include <cstring>

namespace diapason::comm::nccl {

struct HostGate::Job {
  std::shared_ptr<HostGate> gate;
  std::vector<Copy> copies;
};

void HostGate::Run(void* job) {
  const std::unique_ptr<Job> mine(static_cast<Job*>(job));
  const std::lock_guard<std::mutex> lock(mine->gate->mutex_);
  if (mine->gate->shut_) return;
  for (const Copy& copy : mine->copies) std::memcpy(copy.out, copy.in, copy.bytes);
}

Status HostGate::Enqueue(const std::shared_ptr<HostGate>& gate, gpu::Runtime* runtime, void* stream,
                         std::vector<Copy> copies) {
  auto job = std::make_unique<Job>(Job{gate, std::move(copies)});
  Status status = runtime->CallHost(&HostGate::Run, job.get(), stream);
  if (status.ok()) static_cast<void>(job.release());  // Run deletes it
  return status;
}

void HostGate::Shut() {
  const std::lock_guard<std::mutex> lock(mutex_);
  shut_ = true;
}

Result<std::shared_ptr<Workspace>> Workspace::Make(gpu::Runtime* runtime, int device) {
  std::shared_ptr<Workspace> workspace(new Workspace(runtime, device));
  ASSIGN_OR_RETURN(void* const stream, runtime->CreateStream());
  workspace->stream_ = stream;
  ASSIGN_OR_RETURN(gpu::BlockPool::Block* const word,
                   workspace->device_blocks_.Borrow(sizeof(int32_t)));
  workspace->barrier_word_ = word->memory;
  return workspace;
}

bool Workspace::HasEnded(const CallInFlight& flight) const {
  if (flight.deferred) return false;
  if (!flight.started) return true;
  const Result<bool> done = runtime_->EventDone(flight.end);
  return done.ok() && done.value();
}

Result<CallInFlight*> Workspace::Begin() {
  for (const auto& flight : flights_) {
    if (flight->held || !HasEnded(*flight)) continue;
    if (flight->captured && !flight->blocks.empty()) continue;
    for (gpu::BlockPool::Block* block : flight->blocks) gpu::BlockPool::Return(block);
    flight->blocks.clear();
    flight->started = false;
    flight->held = true;
    return flight.get();
  }
  auto flight = std::make_unique<CallInFlight>();
  ASSIGN_OR_RETURN(void* const begin, runtime_->CreateEvent());
  flight->begin = begin;
  const Result<void*> end = runtime_->CreateEvent();
  if (!end.ok()) {
    runtime_->DestroyEvent(flight->begin);
    return end.status();
  }
  flight->end = end.value();
  flights_.push_back(std::move(flight));
  return flights_.back().get();
}

Result<void*> Workspace::Borrow(gpu::BlockPool* pool, CallInFlight* flight, size_t bytes) {
  ASSIGN_OR_RETURN(gpu::BlockPool::Block* const block, pool->Borrow(bytes));
  flight->blocks.push_back(block);
  return block->memory;
}

bool Workspace::Idle() {
  return std::all_of(flights_.begin(), flights_.end(),
                     [this](const auto& flight) { return HasEnded(*flight); });
}

void Workspace::FreeAll() {
  for (const auto& flight : flights_) {
    runtime_->DestroyEvent(flight->begin);
    runtime_->DestroyEvent(flight->end);
    flight->begin = flight->end = nullptr;
    flight->started = false;
  }
  device_blocks_.FreeAll();
  pinned_blocks_.FreeAll();
  if (stream_ != nullptr) runtime_->DestroyStream(stream_);
  stream_ = nullptr;
}

}  // namespace diapason::comm::nccl
