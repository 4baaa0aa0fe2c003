#include "plugin/learning/run_check.h"

#include <charconv>

#include "base/text.h"

namespace diapason::plugin {
namespace {

constexpr size_t kMostOver = 8;

std::string Shown(const RunSample& sample) {
  return Format("{}/{}/{}", sample.algorithm, sample.protocol, sample.channels);
}

bool TakeField(std::string_view* text, char end, int64_t low, int64_t high, int64_t* value) {
  const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), *value);
  if (error != std::errc() || *value < low || *value > high) return false;
  text->remove_prefix(static_cast<size_t>(stop - text->data()));
  if (text->empty() || text->front() != end) return false;
  text->remove_prefix(1);
  return true;
}

}  // namespace

std::string RunSamplesText(const std::vector<RunSample>& samples) {
  std::string text;
  for (const RunSample& one : samples) {
    text += Format("{}:{}:{}.{}.{};", one.index, one.sequence, one.algorithm, one.protocol,
                   one.channels);
  }
  return text;
}

std::optional<std::vector<RunSample>> ParseRunSamples(std::string_view text) {
  std::vector<RunSample> samples;
  while (!text.empty()) {
    int64_t index = 0;
    int64_t sequence = 0;
    int64_t algorithm = 0;
    int64_t protocol = 0;
    int64_t channels = 0;
    if (samples.size() == kMostRunSamples || !TakeField(&text, ':', 0, INT64_MAX, &index) ||
        !TakeField(&text, ':', 0, INT64_MAX, &sequence) ||
        !TakeField(&text, '.', -1, 127, &algorithm) || !TakeField(&text, '.', -1, 127, &protocol) ||
        !TakeField(&text, ';', 0, 1024, &channels)) {
      return std::nullopt;
    }
    samples.push_back({static_cast<uint64_t>(index), static_cast<uint64_t>(sequence),
                       static_cast<int>(algorithm), static_cast<int>(protocol),
                       static_cast<int>(channels)});
  }
  return samples;
}

RunDifference CompareRuns(const std::vector<RunSample>& mine,
                          const std::vector<RunSample>& theirs) {
  RunDifference difference;
  for (const RunSample& one : mine) {
    for (const RunSample& other : theirs) {
      const auto number = static_cast<unsigned long long>(one.sequence);
      // The library's sequence number shows that it is the same call.
      if (one.sequence == other.sequence &&
          (one.algorithm != other.algorithm || one.protocol != other.protocol)) {
        return {RunDifference::Kind::kRuns,
                Format("call {} ran as {} and on rank 0 as {}", number, Shown(one), Shown(other))};
      }
      // The library may have lowered the channel count on one rank: that proves no different
      // choice.
      const bool counts = one.sequence == other.sequence && one.channels != other.channels;
      const bool clocks = (one.sequence == other.sequence) != (one.index == other.index);
      if (difference.kind != RunDifference::Kind::kNone || (!counts && !clocks)) continue;
      difference.kind = RunDifference::Kind::kClocks;
      difference.text = counts ? Format("call {} has {} channels and on rank 0 {}", number,
                                        one.channels, other.channels)
                               : Format("call {} is counted as {}, and on rank 0 call {} as {}",
                                        number, one.index, other.sequence, other.index);
    }
  }
  return difference;
}

void RunSamples::Entered(const agree::EpochLog::Epoch& epoch) {
  Epoch fresh;
  fresh.number = epoch.number;
  fresh.start = epoch.start;
  fresh.end = epoch.end();
  open_.push_back(std::move(fresh));
  // The last runs of the previous epoch may still arrive.
  while (open_.size() > 2) {
    if (!open_.front().samples.empty()) over_.push_back(std::move(open_.front()));
    open_.pop_front();
  }
  while (over_.size() > kMostOver) over_.pop_front();
}

void RunSamples::Add(const RunSample& sample) {
  for (Epoch& epoch : open_) {
    if (sample.index < epoch.start || sample.index >= epoch.end) continue;
    if (epoch.samples.size() < kMostRunSamples) epoch.samples.push_back(sample);
    return;
  }
}

}  // namespace diapason::plugin
