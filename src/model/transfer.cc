#include "model/transfer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "domain/collectives.h"
#include "model/gap.h"

namespace diapason::model {
namespace {

// Doublings of the number of nodes beyond the measured ones, and between two of them.
constexpr double kMostBeyond = 2;
constexpr double kMostApart = 3;
// What is usual for a doubling of the nodes, before the data say anything; it counts as much as
// this many sizes.
constexpr double kUsualUnit = 0.15;
constexpr double kUsualWorth = 1;
constexpr double kClose = 0.2;
constexpr double kSizeReach = 2 * (1 + 1e-9);
constexpr double kHarm = 0.95;
constexpr double kMostHarmful = 0.05;
// Of the 90 % intervals of gains that were left out, this many have to hold.
constexpr double kLeastHeld = 0.8;
constexpr double kNinety = 1.6449;
constexpr size_t kLeastChanged = 6;
constexpr size_t kLeastCounts = 2;
constexpr size_t kNone = SIZE_MAX;

double Doublings(int from, int to) {
  return std::log2(static_cast<double>(to) / static_cast<double>(from));
}

const MeasuredConfig& DefaultOf(const MeasuredSize& context) {
  return context.cells[*context.library_default];
}

// A gain at a size, from the sizes around it.
std::optional<Estimate> GainAt(const MeasuredPlace& place, double size_unit, uint64_t bytes,
                               const Config& config) {
  const std::optional<Surrounding> around = Surround(place, bytes, config);
  if (!around.has_value() || around->Reach(bytes) > kSizeReach) return {};
  const auto gain = [&](const MeasuredSize& context) {
    const MeasuredConfig& cell = *context.Find(config);
    const MeasuredConfig& own = DefaultOf(context);
    return Estimate{own.log_seconds - cell.log_seconds, Together(own.noise, cell.noise)};
  };
  const Estimate low = gain(*around->below);
  const Estimate high = gain(*around->above);
  const double w = around->weight;
  const double noise = Together((1 - w) * low.doubt, w * high.doubt);
  return Estimate{(1 - w) * low.log_seconds + w * high.log_seconds,
                  Together(noise, GapError(size_unit, w, around->doublings))};
}

std::optional<double> DefaultAt(const MeasuredPlace& place, uint64_t bytes) {
  const std::optional<Surrounding> around = Surround(place, bytes, {});
  if (!around.has_value() || around->Reach(bytes) > kSizeReach) return {};
  return (1 - around->weight) * DefaultOf(*around->below).log_seconds +
         around->weight * DefaultOf(*around->above).log_seconds -
         std::log(std::max(0.1, BusFactor(place.place.collective, place.place.ranks)));
}

// The deviations of a doubling of the nodes, from neighbouring places: of the gains of
// configurations that come close to the best, and of the library's own times.
struct WalkUnits {
  double gain = kUsualUnit;
  double time = INFINITY;  // unknown
};

WalkUnits UnitsOf(const std::vector<const MeasuredPlace*>& places) {
  double sum = kUsualWorth * kUsualUnit * kUsualUnit;
  double count = kUsualWorth;
  double time_sum = 0;
  double time_count = 0;
  for (size_t i = 0; i + 1 < places.size(); ++i) {
    const MeasuredPlace& low = *places[i];
    const MeasuredPlace& high = *places[i + 1];
    const double apart = Doublings(low.place.nodes, high.place.nodes);
    for (const MeasuredSize& context : low.contexts) {
      const auto other =
          std::find_if(high.contexts.begin(), high.contexts.end(),
                       [&](const MeasuredSize& one) { return one.bytes == context.bytes; });
      if (other == high.contexts.end() || !context.library_default.has_value() ||
          !other->library_default.has_value()) {
        continue;
      }
      const double scaled = *DefaultAt(high, context.bytes) - *DefaultAt(low, context.bytes);
      time_sum += scaled * scaled / apart;
      ++time_count;
      double best = -HUGE_VAL;
      std::vector<std::pair<double, double>> gains;  // at the two, and the square of the difference
      for (const MeasuredConfig& cell : context.cells) {
        const MeasuredConfig* const there = other->Find(cell.config);
        if (cell.config.IsDefault() || there == nullptr) continue;
        const MeasuredConfig& own = DefaultOf(context);
        const MeasuredConfig& own_there = DefaultOf(*other);
        const double here = own.log_seconds - cell.log_seconds;
        const double off = own_there.log_seconds - there->log_seconds - here;
        const double noise = own.noise * own.noise + cell.noise * cell.noise +
                             own_there.noise * own_there.noise + there->noise * there->noise;
        gains.emplace_back(here, std::max(0.0, off * off - noise) / apart);
        best = std::max(best, here);
      }
      double squares = 0;
      double close = 0;
      for (const auto& [gain, square] : gains) {
        if (gain < best - kClose) continue;
        squares += square;
        ++close;
      }
      if (close == 0) continue;
      sum += squares / close;
      ++count;
    }
  }
  WalkUnits units;
  units.gain = std::sqrt(sum / count);
  if (time_count > 0) units.time = std::sqrt(time_sum / time_count);
  return units;
}

std::vector<Config> ConfigsAt(const std::vector<const MeasuredPlace*>& places) {
  std::set<Config, decltype(&ConfigLess)> configs(&ConfigLess);
  for (const MeasuredPlace* place : places) {
    for (const MeasuredSize& context : place->contexts) {
      for (const MeasuredConfig& cell : context.cells) {
        if (!cell.config.IsDefault() && cell.paired) configs.insert(cell.config);
      }
    }
  }
  return {configs.begin(), configs.end()};
}

}  // namespace

void Transfer::CountHeld(const Prediction& prediction, const MeasuredSize& context, Trial* trial) {
  const MeasuredConfig& own = DefaultOf(context);
  for (const PredictedConfig& one : prediction.candidates) {
    const MeasuredConfig& cell = *context.Find(one.config);
    const double said = prediction.library_default->log_seconds - one.estimate.log_seconds;
    const double noise = Together(own.noise, cell.noise);
    const double doubt = Together(Together(one.estimate.doubt, prediction.bend), noise);
    ++trial->cells;
    if (std::fabs(own.log_seconds - cell.log_seconds - said) <= kNinety * doubt) ++trial->held;
  }
}

bool Transfer::Trial::Holds() const {
  return counts >= kLeastCounts && changed >= kLeastChanged && sum_gain > 0 &&
         static_cast<double>(harmful) <= kMostHarmful * static_cast<double>(changed) &&
         static_cast<double>(held) >= kLeastHeld * static_cast<double>(cells);
}

Transfer::Transfer(const std::vector<MeasuredPlace>& places) {
  std::map<std::pair<Collective, int>, std::vector<const MeasuredPlace*>> found;
  for (const MeasuredPlace& place : places) {
    if (place.place.nodes < 2 || place.place.ranks % place.place.nodes != 0) continue;
    found[{place.place.collective, place.place.ranks / place.place.nodes}].push_back(&place);
  }
  for (auto& [key, members] : found) {
    if (members.size() < 2) continue;
    std::sort(members.begin(), members.end(),
              [](const auto* a, const auto* b) { return a->place.nodes < b->place.nodes; });
    Group group{key.first, key.second, {}, {}, {}};
    for (const MeasuredPlace* place : members) {
      group.places.push_back(*place);
      group.size_units.push_back(GapUnit(*place));
    }
    group.trial = Try(group);
    groups_.push_back(std::move(group));
  }
}

std::optional<Prediction> Transfer::Ask(const Group& group, const CallPlace& place, uint64_t bytes,
                                        size_t left_out) {
  std::vector<const MeasuredPlace*> known;
  std::vector<double> size_units;
  for (size_t i = 0; i < group.places.size(); ++i) {
    if (i == left_out) continue;
    known.push_back(&group.places[i]);
    size_units.push_back(group.size_units[i]);
  }
  // The nearest on both sides; the same beyond the last.
  size_t above = 0;
  while (above < known.size() && known[above]->place.nodes < place.nodes) ++above;
  const size_t below = above == 0 ? 0 : above - 1;
  if (above == known.size()) above = below;
  const WalkUnits units = UnitsOf(known);
  Prediction prediction;
  prediction.place = place;
  prediction.bytes = bytes;
  double w = 0;
  const double apart = Doublings(known[below]->place.nodes, known[above]->place.nodes);
  if (above != below) {
    if (apart > kMostApart) return {};
    w = Doublings(known[below]->place.nodes, place.nodes) / apart;
    prediction.bend = GapError(units.gain, w, apart);
    prediction.time_bend = Together(prediction.bend, GapError(units.time, w, apart));
  } else {
    const double beyond = std::fabs(Doublings(known[below]->place.nodes, place.nodes));
    if (beyond > kMostBeyond + 1e-9) return {};
    prediction.bend = BeyondError(units.gain, beyond);
    prediction.time_bend = Together(prediction.bend, BeyondError(units.time, beyond));
  }
  const std::optional<double> low = DefaultAt(*known[below], bytes);
  const std::optional<double> high = DefaultAt(*known[above], bytes);
  if (!low.has_value() || !high.has_value()) return {};
  prediction.library_default =
      Estimate{(1 - w) * *low + w * *high +
                   std::log(std::max(0.1, BusFactor(place.collective, place.ranks))),
               0};
  for (const Config& config : ConfigsAt({known[below], known[above]})) {
    const std::optional<Estimate> here = GainAt(*known[below], size_units[below], bytes, config);
    const std::optional<Estimate> there = GainAt(*known[above], size_units[above], bytes, config);
    if (!here.has_value() || !there.has_value()) continue;
    const double gain = (1 - w) * here->log_seconds + w * there->log_seconds;
    prediction.candidates.push_back({config,
                                     {prediction.library_default->log_seconds - gain,
                                      Together((1 - w) * here->doubt, w * there->doubt)},
                                     Basis::kTransferred});
  }
  if (prediction.candidates.empty()) return {};
  return prediction;
}

Transfer::Trial Transfer::Try(const Group& group) {
  Trial trial;
  trial.collective = group.collective;
  trial.ranks_per_node = group.ranks_per_node;
  for (size_t i = 0; i < group.places.size(); ++i) {
    const size_t before = trial.changed;
    for (const MeasuredSize& context : group.places[i].contexts) {
      if (!context.library_default.has_value()) continue;
      std::optional<Prediction> prediction = Ask(group, group.places[i].place, context.bytes, i);
      if (!prediction.has_value()) continue;
      // Only what was measured there can be judged.
      std::erase_if(prediction->candidates, [&](const PredictedConfig& one) {
        return context.Find(one.config) == nullptr;
      });
      ++trial.choices;
      CountHeld(*prediction, context, &trial);
      const ModelChoice choice = Choose(*prediction, {});
      if (choice.leave_default || !choice.best.has_value()) continue;
      const double gain =
          DefaultOf(context).log_seconds - context.Find(choice.best->config)->log_seconds;
      ++trial.changed;
      trial.sum_gain += gain;
      if (gain < std::log(kHarm)) ++trial.harmful;
    }
    trial.counts += trial.changed > before ? 1 : 0;
  }
  return trial;
}

const Transfer::Group* Transfer::Find(const CallPlace& place) const {
  if (place.nodes < 2) return nullptr;
  for (const Group& group : groups_) {
    if (group.collective == place.collective && group.ranks_per_node * place.nodes == place.ranks) {
      return &group;
    }
  }
  return nullptr;
}

std::optional<Prediction> Transfer::At(const CallPlace& place, uint64_t bytes) const {
  const Group* const group = Find(place);
  if (group == nullptr || !group->trial.Holds()) return {};
  return Ask(*group, place, bytes, kNone);
}

std::vector<CallPlace> Transfer::Unmeasured() const {
  std::vector<CallPlace> places;
  for (const Group& group : groups_) {
    if (!group.trial.Holds()) continue;
    const int last = group.places.back().place.nodes;
    std::set<int> measured;
    for (const MeasuredPlace& place : group.places) measured.insert(place.place.nodes);
    for (int nodes = group.places.front().place.nodes; nodes <= 2 * last; nodes *= 2) {
      if (measured.count(nodes) > 0) continue;
      places.push_back({group.collective, nodes, nodes * group.ranks_per_node});
    }
  }
  return places;
}

std::vector<uint64_t> Transfer::SizesFor(const CallPlace& place) const {
  const Group* const group = Find(place);
  if (group == nullptr) return {};
  std::set<uint64_t> sizes;
  for (const MeasuredPlace& one : group->places) {
    for (const MeasuredSize& context : one.contexts) sizes.insert(context.bytes);
  }
  return {sizes.begin(), sizes.end()};
}

std::vector<Transfer::Trial> Transfer::trials() const {
  std::vector<Trial> trials;
  for (const Group& group : groups_) trials.push_back(group.trial);
  return trials;
}

}  // namespace diapason::model
