#include "dataset/recorder.h"

namespace diapason::dataset {
namespace {

constexpr size_t kBatch = 64;
constexpr std::chrono::milliseconds kWriteEvery{500};

}  // namespace

Status Recorder::Add(Sample sample) {
  if (store_ == nullptr) return {};
  pending_.push_back(std::move(sample));
  const auto now = std::chrono::steady_clock::now();
  if (pending_.size() < kBatch && now - written_ < kWriteEvery) return {};
  written_ = now;
  return Flush();
}

Status Recorder::Flush() {
  if (store_ == nullptr || pending_.empty()) return {};
  const Status added = store_->Add(run_, pending_);
  if (added.ok()) pending_.clear();
  return added;
}

}  // namespace diapason::dataset
