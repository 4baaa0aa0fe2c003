#include "learn/rewards.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/stats.h"
#include "base/text.h"

namespace diapason::learn {
namespace {

// No collective takes longer; a larger number is an error of the program that wrote it.
constexpr double kMostSeconds = 3600;
constexpr double kLeastSeconds = 1e-9;
// Enough for any quantile; bounds the memory of a settled segment with many thousand calls.
constexpr size_t kMostSamples = 1024;
constexpr size_t kShortestTrimmed = 4;
// A call that takes this many times as long as the fastest of its block was delayed by something
// else: no two calls of one configuration differ so.
constexpr double kSpike = 2.5;
constexpr uint64_t kMostBytes = uint64_t{1} << 50;
constexpr int64_t kMostRanks = int64_t{1} << 24;

bool SensibleSeconds(double seconds) {
  return std::isfinite(seconds) && seconds >= kLeastSeconds && seconds <= kMostSeconds;
}

// A whole text as a decimal number; no sign, blank, hexadecimal digit, "inf" or "nan".
bool ParseDecimal(std::string_view text, double* value) {
  if (text.empty() || text.find_first_not_of("0123456789.eE+-") != std::string_view::npos ||
      text.front() == '-' || text.front() == '+') {
    return false;
  }
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && at == end;
}

}  // namespace

SampleBook::SampleBook(size_t kept) : kept_(std::max<size_t>(kept, 1)) {}

void SampleBook::Open(uint32_t epoch, uint64_t start, const Schedule& schedule) {
  if (!pages_.empty() && epoch <= pages_.back().epoch) return;
  if (pages_.size() == kept_) pages_.pop_front();
  Page page;
  page.epoch = epoch;
  page.start = start;
  page.schedule = schedule;
  page.samples.resize(schedule.segments.size());
  if (!schedule.segments.empty()) {
    page.begins_with_change = schedule.segments.front().config != last_;
    last_ = schedule.segments.back().config;
  }
  pages_.push_back(std::move(page));
}

bool SampleBook::IsChange(const Page& page, size_t segment) {
  if (segment == 0) return page.begins_with_change;
  return page.schedule.segments[segment].config != page.schedule.segments[segment - 1].config;
}

bool SampleBook::Credit(uint64_t first, uint64_t end, double seconds) {
  if (end <= first || !SensibleSeconds(seconds)) return false;
  for (auto page = pages_.rbegin(); page != pages_.rend(); ++page) {
    if (first < page->start) continue;
    uint64_t offset = first - page->start;
    for (size_t i = 0; i < page->schedule.segments.size(); ++i) {
      const Segment& segment = page->schedule.segments[i];
      if (offset >= segment.calls) {
        offset -= segment.calls;
        continue;
      }
      if (end - first > segment.calls - offset || !segment.counts) return false;
      const bool alone = end - first == segment.calls;
      if (skips_changes_ && offset == 0 && !alone && IsChange(*page, i)) return false;
      if (page->samples[i].size() < kMostSamples) page->samples[i].push_back(seconds);
      return true;
    }
    return false;
  }
  return false;
}

std::optional<std::vector<std::vector<double>>> SampleBook::Samples(uint32_t epoch) const {
  for (const Page& page : pages_) {
    if (page.epoch == epoch) return page.samples;
  }
  return std::nullopt;
}

bool SampleBook::Complete(uint32_t epoch, uint64_t calls_per_sample) const {
  for (const Page& page : pages_) {
    if (page.epoch != epoch) continue;
    for (size_t i = 0; i < page.samples.size(); ++i) {
      const Segment& segment = page.schedule.segments[i];
      if (!segment.counts) continue;
      const uint64_t possible = segment.calls / std::max<uint64_t>(calls_per_sample, 1);
      if (page.samples[i].size() < std::min<uint64_t>(possible, kMostSamples)) return false;
    }
    return true;
  }
  return false;
}

void SampleBook::Close(uint32_t epoch) {
  std::erase_if(pages_, [epoch](const Page& page) { return page.epoch == epoch; });
}

std::vector<uint32_t> SampleBook::open() const {
  std::vector<uint32_t> epochs;
  for (const Page& page : pages_) epochs.push_back(page.epoch);
  return epochs;
}

std::vector<SegmentResult> BlockResults(const std::vector<std::vector<double>>& samples) {
  std::vector<SegmentResult> results;
  for (const std::vector<double>& segment : samples) {
    SegmentResult result;
    const size_t skipped = segment.size() >= kShortestTrimmed ? 1 : 0;
    std::vector<double> kept(segment.begin() + static_cast<ptrdiff_t>(skipped), segment.end());
    if (!kept.empty()) {
      // Of two or three samples a quartile is not low enough to leave out a spike.
      if (kept.size() < kShortestTrimmed) {
        const double longest = kSpike * *std::min_element(kept.begin(), kept.end());
        std::erase_if(kept, [longest](double seconds) { return seconds > longest; });
      }
      result.samples = static_cast<uint32_t>(kept.size());
      result.seconds = Quantile(std::move(kept), 0.25);
    }
    results.push_back(result);
  }
  return results;
}

std::string ResultsText(const std::vector<SegmentResult>& results) {
  std::string text;
  for (const SegmentResult& result : results) {
    if (!text.empty()) text += ';';
    text += Format("{:.9g}x{}", result.seconds, result.samples);
  }
  return text;
}

Result<std::vector<SegmentResult>> ParseResults(std::string_view text, size_t segments) {
  const Status bad = Invalid("not the results of " + Count(segments, "segment") + ": '" +
                             std::string(text.substr(0, 60)) + "'");
  std::vector<SegmentResult> results;
  if (text.empty()) {
    if (segments == 0) return results;
    return bad;
  }
  for (const std::string_view word : Split(text, ';')) {
    const size_t cross = word.find('x');
    if (results.size() == segments || cross == std::string_view::npos) return bad;
    SegmentResult result;
    uint64_t samples = 0;
    if (!ParseDecimal(word.substr(0, cross), &result.seconds) ||
        !ParseUnsigned(word.substr(cross + 1), &samples) || samples > UINT32_MAX) {
      return bad;
    }
    result.samples = static_cast<uint32_t>(samples);
    // Either no samples and no time, or both.
    if (samples == 0 ? result.seconds != 0 : !SensibleSeconds(result.seconds)) return bad;
    results.push_back(result);
  }
  if (results.size() != segments) return bad;
  return results;
}

std::vector<SegmentResult> SlowestOf(const std::vector<std::vector<SegmentResult>>& ranks) {
  std::vector<SegmentResult> slowest;
  if (ranks.empty()) return slowest;
  size_t most = 0;
  for (const auto& rank : ranks) most = std::max(most, rank.size());
  for (size_t i = 0; i < most; ++i) {
    SegmentResult result;
    for (const auto& rank : ranks) {
      if (i >= rank.size() || rank[i].samples == 0 || !SensibleSeconds(rank[i].seconds)) {
        result = {};
        break;
      }
      result.seconds = std::max(result.seconds, rank[i].seconds);
      result.samples =
          result.samples == 0 ? rank[i].samples : std::min(result.samples, rank[i].samples);
    }
    slowest.push_back(result);
  }
  return slowest;
}

double SkewOf(const std::vector<std::vector<SegmentResult>>& ranks) {
  double skew = 1;
  const std::vector<SegmentResult> slowest = SlowestOf(ranks);
  for (size_t i = 0; i < slowest.size(); ++i) {
    if (slowest[i].samples == 0) continue;
    for (const auto& rank : ranks) skew = std::max(skew, slowest[i].seconds / rank[i].seconds);
  }
  return skew;
}

Result<RewardLine> ParseRewardLine(std::string_view line) {
  const auto bad = [&line](const std::string& why) {
    return Invalid(
        "not a reward line (collective,bytes,nodes,ranks,milliseconds[,call[,calls]]): " + why +
        " in '" + std::string(line.substr(0, 80)) + "'");
  };
  if (line.size() > kLongestRewardLine) return bad("too long");
  const std::vector<std::string_view> cells = Split(Trim(line), ',');
  if (cells.size() < 5 || cells.size() > 7) {
    return bad(Count(cells.size(), "cell") + " instead of 5 to 7");
  }
  RewardLine reward;
  const Result<Collective> collective = ParseCollective(Library::kNccl, Trim(cells[0]));
  if (!collective.ok()) return collective.status().WithContext("reward line");
  reward.collective = collective.value();
  if (!ParseUnsigned(Trim(cells[1]), &reward.bytes) || reward.bytes == 0 ||
      reward.bytes > kMostBytes) {
    return bad("no size");
  }
  if (!ParseSigned(Trim(cells[2]), &reward.nodes) || reward.nodes < 1 ||
      reward.nodes > kMostRanks) {
    return bad("no number of nodes");
  }
  if (!ParseSigned(Trim(cells[3]), &reward.ranks) || reward.ranks < reward.nodes ||
      reward.ranks > kMostRanks) {
    return bad("no number of ranks");
  }
  double milliseconds = 0;
  if (!ParseDecimal(Trim(cells[4]), &milliseconds) || !SensibleSeconds(milliseconds * 1e-3)) {
    return bad("no time");
  }
  reward.seconds = milliseconds * 1e-3;
  if (cells.size() > 5 && (!ParseUnsigned(Trim(cells[5]), &reward.call) || reward.call == 0)) {
    return bad("no call number");
  }
  if (cells.size() > 6 && (!ParseUnsigned(Trim(cells[6]), &reward.calls) || reward.calls == 0 ||
                           reward.calls > reward.call)) {
    return bad("no number of calls");
  }
  return reward;
}

std::vector<RewardLine> RewardLines::Feed(std::string_view piece) {
  std::vector<RewardLine> lines;
  while (!piece.empty()) {
    const size_t end = piece.find('\n');
    const std::string_view part = piece.substr(0, end);
    piece.remove_prefix(end == std::string_view::npos ? piece.size() : end + 1);
    if (!skipping_ && partial_.size() + part.size() > kLongestRewardLine) {
      skipping_ = true;
      partial_.clear();
      ++garbage_;
    }
    if (!skipping_) partial_ += part;
    if (end == std::string_view::npos) break;
    if (!skipping_ && !Trim(partial_).empty() && Trim(partial_).front() != '#') {
      const Result<RewardLine> line = ParseRewardLine(partial_);
      if (line.ok()) {
        lines.push_back(line.value());
      } else {
        ++garbage_;
      }
    }
    partial_.clear();
    skipping_ = false;
  }
  return lines;
}

void RewardLines::Restart() {
  partial_.clear();
  skipping_ = false;
}

}  // namespace diapason::learn
