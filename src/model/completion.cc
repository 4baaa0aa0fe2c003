#include "model/completion.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "base/stats.h"

namespace diapason::model {
namespace {

constexpr double kLeastDoubt = 1e-8;  // squared

// The channel counts at which estimates are computed; times are smooth in between.
std::vector<int> Posts(const ChannelRange& range) {
  std::set<int> posts = {1, range.top};
  for (int channels = 1; channels < range.top; channels += std::max(1, channels / 3)) {
    posts.insert(channels);
  }
  if (range.lowest > 0) posts.insert({range.lowest, range.highest});
  return {posts.begin(), posts.end()};
}

}  // namespace

double Reference(const MeasuredSize& context) {
  if (context.library_default.has_value())
    return context.cells[*context.library_default].log_seconds;
  std::vector<double> all;
  for (const MeasuredConfig& cell : context.cells) all.push_back(cell.log_seconds);
  return Median(all);
}

std::vector<Estimate> AskNeighbours(const FamilyModel& model, double log_bytes,
                                    const ChannelRange& range, size_t width) {
  if (width == 1) return {model.At(log_bytes, 1)};
  const std::vector<int> posts = Posts(range);
  const std::vector<Estimate> asked = model.At(log_bytes, posts);
  std::vector<Estimate> all(width);
  for (size_t p = 0; p + 1 < posts.size(); ++p) {
    const double low = std::log(posts[p]);
    const double high = std::log(posts[p + 1]);
    for (int channels = posts[p]; channels <= posts[p + 1]; ++channels) {
      const double weight = (std::log(channels) - low) / (high - low);
      all[static_cast<size_t>(channels) - 1] = {
          (1 - weight) * asked[p].log_seconds + weight * asked[p + 1].log_seconds,
          (1 - weight) * asked[p].doubt + weight * asked[p + 1].doubt};
    }
  }
  return all;
}

void Correct(const MeasuredSize& context, const ConfigFamily& family,
             std::vector<Estimate>* neighbours) {
  struct Deviation {
    double log_channels = 0;
    double off = 0;
  };
  std::vector<Deviation> deviations;
  for (const MeasuredConfig& cell : context.cells) {
    if (!(FamilyOf(cell.config) == family) || cell.config.IsDefault()) continue;
    const size_t place = family.channels ? static_cast<size_t>(cell.config.channels) - 1 : 0;
    const Estimate& near = (*neighbours)[place];
    const double believed =
        near.doubt * near.doubt / (near.doubt * near.doubt + cell.noise * cell.noise);
    deviations.push_back({std::log(static_cast<double>(place + 1)),
                          believed * (cell.log_seconds - near.log_seconds)});
  }
  if (deviations.empty()) return;
  for (size_t i = 0; i < neighbours->size(); ++i) {
    const double at = std::log(static_cast<double>(i + 1));
    const Deviation* below = nullptr;
    const Deviation* above = nullptr;
    for (const Deviation& one : deviations) {
      if (one.log_channels <= at) below = &one;
      if (one.log_channels >= at && above == nullptr) above = &one;
    }
    double off = 0;
    if (below == nullptr || above == nullptr) {
      const Deviation& last = below == nullptr ? *above : *below;
      off = last.off * std::exp(-std::fabs(at - last.log_channels) / std::numbers::ln2);
    } else if (below == above) {
      off = below->off;
    } else {
      const double weight =
          (at - below->log_channels) / (above->log_channels - below->log_channels);
      off = (1 - weight) * below->off + weight * above->off;
    }
    (*neighbours)[i].log_seconds += off;
  }
}

SceneTable::Value Weigh(const Estimate& measured, const Estimate& neighbours) {
  const auto precision = [](double doubt) { return 1 / std::max(kLeastDoubt, doubt * doubt); };
  const double first = precision(measured.doubt);
  const double second = precision(neighbours.doubt);
  const double sum = first + second;
  return {
      static_cast<float>((first * measured.log_seconds + second * neighbours.log_seconds) / sum),
      static_cast<float>(std::sqrt(1 / sum)), true};
}

}  // namespace diapason::model
