// The costs of a world's calls, and its slow ranks.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/random.h"
#include "base/text.h"
#include "comm/backends/sim/world.h"
#include "domain/collectives.h"

namespace diapason::comm::sim {
namespace {

// Random number streams besides the worlds' own.
constexpr uint64_t kWhoIsSlow = 1;
constexpr uint64_t kSlowNow = 2;

// The size as the library counts it. False: it does not fit into 64 bits.
bool TotalBytes(const Call& call, int ranks, uint64_t* bytes) {
  if (__builtin_mul_overflow(static_cast<uint64_t>(call.count), SizeOf(call.type), bytes)) {
    return false;
  }
  return !CountsAllRanks(call.operation) ||
         !__builtin_mul_overflow(*bytes, static_cast<uint64_t>(ranks), bytes);
}

}  // namespace

Status World::CanRun(const Call& call) const {
  uint64_t bytes = 0;
  if (!TotalBytes(call, size(), &bytes)) {
    return Invalid(Format("{} of {} elements: the size does not fit into 64 bits",
                          OperationName(call.operation), call.count));
  }
  const std::optional<Collective> collective = CollectiveOf(call.operation);
  if (!collective.has_value()) {
    if (call.config.IsDefault()) return {};
    return Invalid(std::string(OperationName(call.operation)) + " has nothing to choose");
  }
  return Estimate(*cluster_, layout_, *collective, bytes, call.config).status();
}

// Noise and stragglers included.
Status World::Price(SimRound* round) const {
  uint64_t bytes = 0;
  if (!TotalBytes(round->call, size(), &bytes)) return CanRun(round->call);
  const std::optional<Collective> collective = CollectiveOf(round->call.operation);
  double seconds = 0;
  if (collective.has_value()) {
    ASSIGN_OR_RETURN(const SimCost cost,
                     Estimate(*cluster_, layout_, *collective, bytes, round->call.config));
    seconds = cost.seconds;
    // An operation without an algorithm uses a channel, too.
    round->channels = std::max(1, cost.config.channels);
  } else {
    seconds = BarrierSeconds(*cluster_, layout_);
    round->channels = 1;
  }
  const NoiseModel& noise = cluster_->noise;
  const CounterRandom random(seed_, stream_);
  seconds *= std::exp(noise.sigma * random.Normal(2 * round->number));
  if (random.Uniform(2 * round->number + 1) < noise.spike_share) seconds *= noise.spike_factor;
  double slowest = 1;
  for (const int rank : slow_) {
    slowest = std::max(slowest, StragglerFactor(rank, MixBits(stream_) + round->number));
  }
  round->seconds = seconds * slowest;
  return {};
}

double World::RankSeconds(const SimRound& round, int rank) const {
  const CounterRandom random(seed_, MixBits(stream_) ^ static_cast<uint64_t>(rank));
  return round.seconds * (1 + cluster_->noise.rank_sigma * std::abs(random.Normal(round.number)));
}

void World::FindStragglers() {
  if (cluster_->stragglers.empty()) return;
  why_slow_.resize(members_.size());
  for (size_t i = 0; i < cluster_->stragglers.size(); ++i) {
    const Straggler& straggler = cluster_->stragglers[i];
    const std::set<int> named(straggler.ranks.begin(), straggler.ranks.end());
    const CounterRandom random(seed_, MixBits(kWhoIsSlow) + i);
    for (size_t rank = 0; rank < members_.size(); ++rank) {
      const int member = members_[rank];
      if (named.contains(member) ||
          random.Uniform(static_cast<uint64_t>(member)) < straggler.share) {
        why_slow_[rank].push_back(&straggler);
      }
    }
  }
  for (int rank = 0; rank < size(); ++rank) {
    if (!why_slow_[static_cast<size_t>(rank)].empty()) slow_.push_back(rank);
  }
}

double World::StragglerFactor(int rank, uint64_t index) const {
  double factor = 1;
  const uint64_t member = static_cast<uint64_t>(members_[static_cast<size_t>(rank)]);
  const CounterRandom random(seed_, MixBits(kSlowNow) + member);
  for (const Straggler* straggler : why_slow_[static_cast<size_t>(rank)]) {
    if (random.Uniform(index) < straggler->often) factor = std::max(factor, straggler->factor);
  }
  return factor;
}

double World::ComputeFactor(int rank, uint64_t index) const {
  return slow_.empty() ? 1 : StragglerFactor(rank, index);
}

// All ranks of a list must have passed the same list.
Status World::SplitUp(SimRound* round) const {
  round->children.resize(members_.size());
  for (int rank = 0; rank < size(); ++rank) {
    const std::vector<int>& wish = *round->wishes[static_cast<size_t>(rank)].members;
    if (wish.empty() || round->children[static_cast<size_t>(rank)] != nullptr) continue;
    std::vector<int> places;
    for (const int other : wish) {
      if (other < 0 || other >= size()) {
        return Invalid(Format("split: rank {} names rank {} of {}", rank, other, size()));
      }
      if (*round->wishes[static_cast<size_t>(other)].members != wish) {
        return Invalid(Format("split: rank {} names rank {}, which names others", rank, other));
      }
      places.push_back(members_[static_cast<size_t>(other)]);
    }
    if (std::set<int>(wish.begin(), wish.end()).size() != wish.size() ||
        std::find(wish.begin(), wish.end(), rank) == wish.end()) {
      return Invalid(Format("split: rank {} names a rank twice, or not itself", rank));
    }
    // The name that one fixed rank gave, independent of the order of arrival.
    const std::string& name = round->wishes[static_cast<size_t>(wish.front())].name;
    const auto child =
        std::make_shared<World>(cluster_, places, Format("{}/{}", name, wish.front()), seed_);
    for (const int other : wish) round->children[static_cast<size_t>(other)] = child;
  }
  return {};
}

}  // namespace diapason::comm::sim
