#include "dataset/recorder.h"

namespace diapason::dataset {
namespace {

constexpr size_t kBatch = 64;
constexpr std::chrono::milliseconds kWriteEvery{500};

}  // namespace

Status Recorder::Begin(const Point& next) {
  if (store_ == nullptr) return {};
  const Status written = Write(&next);
  begun_ = begun_ || written.ok();
  return written;
}

Status Recorder::Add(Sample sample) {
  if (store_ == nullptr) return {};
  pending_.push_back(std::move(sample));
  if (pending_.size() < kBatch && now_() - written_ < kWriteEvery) return {};
  return Flush();
}

Status Recorder::Flush() {
  if (store_ == nullptr || (pending_.empty() && !begun_)) return {};
  const Status written = Write(nullptr);
  if (written.ok()) begun_ = false;
  return written;
}

Status Recorder::Write(const Point* next) {
  written_ = now_();
  const Status written = store_->AddAndTry(run_, pending_, next);
  if (written.ok()) pending_.clear();
  return written;
}

}  // namespace diapason::dataset
