#include "tune/coverage.h"

#include <algorithm>
#include <cmath>

namespace diapason::tune {
namespace {

// Nearer neighbours than this have no size between them that is worth a measurement.
constexpr double kNarrowestGap = 1.15;

// Of a gap beside the library, a row has this share at most: libraries change their choice at one
// byte, and a row that reaches too far does harm there.
constexpr double kMostBesideLibrary = 0.25;

// Sizes between are chosen no further apart than this; rounding adds to it.
constexpr double kIdealGap = 2.02;

// A round size near this one, 32 per doubling, between the two without them. 0: there is none.
uint64_t RoundSize(double bytes, uint64_t low, uint64_t high) {
  const double step = std::exp2(std::floor(std::log2(std::max(bytes, 1.0))) - 5);
  const auto near = static_cast<uint64_t>(std::max(1.0, std::round(bytes / step) * step));
  return near > low && near < high ? near : 0;
}

double Ratio(uint64_t low, uint64_t high) {
  return static_cast<double>(high) / static_cast<double>(std::max<uint64_t>(low, 1));
}

double Log(uint64_t bytes) { return std::log(static_cast<double>(std::max<uint64_t>(bytes, 1))); }

// The first size that belongs to `high`. Both know both configurations: where they are equally
// fast. Otherwise in the middle.
uint64_t Border(const Stop& low, const Stop& high) {
  double share = 0.5;
  const std::optional<double> own_low = low.TimeOf(low.config);
  const std::optional<double> other_low = low.TimeOf(high.config);
  const std::optional<double> own_high = high.TimeOf(high.config);
  const std::optional<double> other_high = high.TimeOf(low.config);
  if (own_low && other_low && own_high && other_high) {
    const double lead_low = std::log(*other_low / *own_low);     // positive: low's is faster there
    const double lead_high = std::log(*other_high / *own_high);  // positive: high's is faster
    if (lead_low > 0 && lead_high > 0) share = lead_low / (lead_low + lead_high);
  }
  if (low.config.IsDefault()) share = std::max(share, 1 - kMostBesideLibrary);
  if (high.config.IsDefault()) share = std::min(share, kMostBesideLibrary);
  const double bytes = std::exp((1 - share) * Log(low.bytes) + share * Log(high.bytes));
  return std::clamp(static_cast<uint64_t>(std::llround(bytes)), low.bytes + 1, high.bytes);
}

class Coverer {
 public:
  Coverer(const std::vector<Stop>& stops, const CoverageOptions& options)
      : stops_(stops), options_(options) {}

  std::vector<Range> Run() {
    if (stops_.empty()) return {};
    Open(0, Scaled(stops_.front().bytes, 1 / options_.edge));
    for (size_t i = 1; i < stops_.size(); ++i) Go(i);
    ranges_.back().last = Scaled(stops_.back().bytes, options_.edge);
    return std::move(ranges_);
  }

 private:
  static uint64_t Scaled(uint64_t bytes, double factor) {
    return static_cast<uint64_t>(static_cast<double>(bytes) * factor);
  }

  void Open(size_t stop, uint64_t first) {
    Range range;
    range.first = first;
    range.config = stops_[stop].config;
    range.support = stops_[stop].support;
    range.why = stops_[stop].why;
    range.stops = {stop};
    ranges_.push_back(std::move(range));
  }

  // From stop i - 1 to stop i.
  void Go(size_t i) {
    const Stop& low = stops_[i - 1];
    const Stop& high = stops_[i];
    Range& now = ranges_.back();
    const bool wide = Ratio(low.bytes, high.bytes) > kWidestGap;
    if (low.config == high.config && (low.config.IsDefault() || !wide)) {
      now.stops.push_back(i);
      now.support = std::max(now.support, high.support);
      if (!low.config.IsDefault() && Ratio(low.bytes, high.bytes) > kNarrowestGap) {
        now.support = std::max(now.support, Support::kBetween);
      }
      return;
    }
    if (!wide) {
      const uint64_t border = Border(low, high);
      now.last = border - 1;
      Open(i, border);
      return;
    }
    // Too far apart to say anything about the middle of it.
    const uint64_t until = std::min(Scaled(low.bytes, options_.reach), high.bytes - 1);
    const uint64_t from = std::max(Scaled(high.bytes, 1 / options_.reach), until + 1);
    if (low.config.IsDefault()) {
      now.last = from - 1;
    } else {
      now.last = until;
      if (!high.config.IsDefault() && from > until + 1) AddHole(until + 1, from - 1);
    }
    Open(i, high.config.IsDefault() ? now_last() + 1 : from);
  }

  uint64_t now_last() const { return ranges_.back().last; }

  void AddHole(uint64_t first, uint64_t last) {
    Range range;
    range.first = first;
    range.last = last;
    range.why = "nothing was measured in this gap";
    ranges_.push_back(std::move(range));
  }

  const std::vector<Stop>& stops_;
  const CoverageOptions& options_;
  std::vector<Range> ranges_;
};

}  // namespace

const char* SupportName(Support support) {
  switch (support) {
    case Support::kVerified:
      return "verified";
    case Support::kMeasured:
      return "measured";
    case Support::kBetween:
      return "between";
    case Support::kLeft:
      break;
  }
  return "left";
}

std::optional<double> Stop::TimeOf(const Config& wanted) const {
  for (const auto& [one, seconds] : times) {
    if (one == wanted && seconds > 0) return seconds;
  }
  return std::nullopt;
}

std::vector<Range> Cover(const std::vector<Stop>& stops, const CoverageOptions& options) {
  return Coverer(stops, options).Run();
}

std::vector<uint64_t> SizesBetween(uint64_t low, uint64_t high) {
  if (low == 0 || high <= low || Ratio(low, high) < kNarrowestGap) return {};
  const double doublings = std::log2(Ratio(low, high));
  const int count = std::max(1, static_cast<int>(std::ceil(doublings / std::log2(kIdealGap))) - 1);
  std::vector<uint64_t> sizes;
  for (int i = 1; i <= count; ++i) {
    const double share = static_cast<double>(i) / (count + 1);
    const uint64_t last = sizes.empty() ? low : sizes.back();
    const double bytes = std::exp((1 - share) * Log(low) + share * Log(high));
    if (const uint64_t size = RoundSize(bytes, last, high); size != 0) sizes.push_back(size);
  }
  return sizes;
}

}  // namespace diapason::tune
