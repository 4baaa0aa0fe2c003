#include "plugin/learning/reporter.h"

#include <algorithm>

#include "base/text.h"

namespace diapason::plugin {
namespace {

constexpr int64_t kMostReporters = 64;

}  // namespace

bool Reports(int rank, int64_t ranks) {
  const int64_t stride = (ranks + kMostReporters - 1) / kMostReporters;
  return stride <= 1 || rank % stride == 0;
}

Reporter::Reporter(agree::CellStore* store, std::string prefix, int rank)
    : store_(store), prefix_(std::move(prefix)), rank_(rank) {}

std::string Reporter::ResultsKey(const std::string& prefix, uint32_t epoch, int rank) {
  return prefix + Format("w.{}.{}", epoch, rank);
}

void Reporter::Entered(const agree::EpochLog::Epoch& epoch, double now) {
  for (auto& [number, open] : open_) {
    if (open.left == 0) open.left = now;
  }
  newest_ = epoch;
  book_.Open(epoch.number, epoch.start, epoch.schedule);
  open_[epoch.number] = {epoch.end(), 0, epoch.schedule.timed};
  const std::vector<uint32_t> kept = book_.open();
  std::erase_if(open_, [&kept](const auto& entry) {
    return std::find(kept.begin(), kept.end(), entry.first) == kept.end();
  });
}

void Reporter::Credit(uint64_t first, uint64_t end, double seconds) {
  book_.Credit(first, end, seconds);
  told_ = std::max(told_, end);
}

std::vector<Reporter::Finished> Reporter::TakeFinished(double now, double patience) {
  std::vector<Finished> finished;
  for (auto entry = open_.begin(); entry != open_.end();) {
    const auto& [number, open] = *entry;
    const bool left = open.left != 0;
    if (!left || (told_ < open.end && now - open.left < patience)) {
      ++entry;
      continue;
    }
    const auto samples = book_.Samples(number);
    if (samples.has_value()) {
      finished.push_back({number, open.timed, learn::BlockResults(*samples)});
    }
    book_.Close(number);
    entry = open_.erase(entry);
  }
  return finished;
}

void Reporter::Post(const Finished& finished) {
  if (!finished.timed || rank_ == 0) return;
  (void)store_->Propose(ResultsKey(prefix_, finished.epoch, rank_),
                        learn::ResultsText(finished.results));
}

}  // namespace diapason::plugin
