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

double Bend(const MeasuredPlace& scene) {
  double squares = 0;
  size_t count = 0;
  for (size_t i = 1; i + 1 < scene.contexts.size(); ++i) {
    const MeasuredSize* const three[] = {&scene.contexts[i - 1], &scene.contexts[i],
                                         &scene.contexts[i + 1]};
    const double low = LogBytes(three[0]->bytes);
    const double high = LogBytes(three[2]->bytes);
    const double weight = (LogBytes(three[1]->bytes) - low) / (high - low);
    const double gap = (high - low) / std::numbers::ln2;
    const double weights[] = {-(1 - weight), 1, -weight};
    double best = INFINITY;
    for (const MeasuredConfig& cell : three[1]->cells) best = std::min(best, cell.log_seconds);
    for (const MeasuredConfig& cell : three[1]->cells) {
      if (cell.config.IsDefault() || cell.log_seconds > best + kCompetitive) continue;
      double off = 0;
      double noise = 0;
      bool everywhere = true;
      for (size_t k = 0; k < 3; ++k) {
        const MeasuredConfig* const there = three[k]->Find(cell.config);
        everywhere = everywhere && there != nullptr;
        if (!everywhere) break;
        off += weights[k] * (there->log_seconds - Reference(*three[k]));
        double variance = there->noise * there->noise;
        if (three[k]->library_default.has_value()) {
          const double other = three[k]->cells[*three[k]->library_default].noise;
          variance += other * other;
        }
        noise += weights[k] * weights[k] * variance;
      }
      if (!everywhere) continue;
      const double shape = weight * (1 - weight) * gap * gap;
      squares += (off * off - noise) / (shape * shape);
      ++count;
    }
  }
  // Three sizes or fewer are not enough: use a tenth, which is typical of other machines.
  return count == 0 ? 0.1 : std::sqrt(std::max(0.0, squares) / static_cast<double>(count));
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

SceneTable::Value Weigh(const Estimate& a, const Estimate& b, bool measured) {
  const auto precision = [](double doubt) { return 1 / std::max(kLeastDoubt, doubt * doubt); };
  const double first = precision(a.doubt);
  const double second = precision(b.doubt);
  return {static_cast<float>((first * a.log_seconds + second * b.log_seconds) / (first + second)),
          static_cast<float>(std::sqrt(1 / (first + second))), measured};
}

}  // namespace diapason::model
