#include "mpi_tune/contexts.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "base/units.h"
#include "domain/mpi_calls.h"
#include "domain/schedule.h"

namespace diapason::mpi_tune {
namespace {

using mpi_profile::Fixed;
using mpi_profile::MpiCallClass;
using mpi_profile::MpiProfile;

constexpr int64_t kSegments[] = {8192, 32768, 131072};

using Key = std::tuple<Collective, int, uint32_t>;

// Whether Open MPI's algorithm divides its data into segments of a size that can be chosen.
bool UsesSegments(Collective collective, std::string_view algorithm) {
  switch (collective) {
    case Collective::kBroadcast:
      return algorithm == "chain" || algorithm == "pipeline" || algorithm == "split_binary_tree" ||
             algorithm == "binary_tree" || algorithm == "binomial" || algorithm == "knomial";
    case Collective::kReduce:
      return algorithm != "linear" && algorithm != "rabenseifner";
    case Collective::kAllReduce:
      return algorithm == "segmented_ring";
    default:
      return false;
  }
}

bool Works(std::string_view algorithm, uint32_t ranks) {
  if (algorithm == "two_proc") return ranks == 2;
  // Pairs of neighbours: an odd rank would have none.
  if (algorithm == "neighbor") return ranks % 2 == 0;
  return true;
}

}  // namespace

std::string Context::Text() const {
  const std::string sizes = least_bytes == most_bytes ? AboutBytes(most_bytes)
                                                      : Format("{} to {}", AboutBytes(least_bytes),
                                                               AboutBytes(most_bytes));
  return Format("{} of {} on {}", std::string(CollectiveName(collective)), sizes,
                Count(ranks, "rank"));
}

std::vector<Context> ContextsOf(const MpiProfile& profile, double least_share, size_t most) {
  std::map<Key, Context> found;
  std::map<Key, std::map<uint64_t, double>> by_size;
  for (const MpiCallClass& one : profile.classes) {
    const std::optional<Collective> collective = CollectiveOf(one.call);
    if (one.fixed != Fixed::kNo || !collective) continue;
    const Key key{*collective, SizeBand(one.bytes), one.ranks};
    const auto [at, fresh] = found.try_emplace(key);
    Context& context = at->second;
    if (fresh) {
      context.collective = *collective;
      context.band = SizeBand(one.bytes);
      context.ranks = one.ranks;
      context.least_bytes = context.most_bytes = one.bytes;
    }
    context.least_bytes = std::min(context.least_bytes, one.bytes);
    context.most_bytes = std::max(context.most_bytes, one.bytes);
    context.calls += one.calls;
    context.seconds += one.seconds;
    by_size[key][one.bytes] += one.seconds;
  }
  std::vector<Context> contexts;
  for (auto& [key, context] : found) {
    const auto& sizes = by_size.at(key);
    context.usual_bytes =
        std::max_element(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->first;
    // Of all calls, those too that the recordings have no room for.
    const double all = profile.recorded_seconds > 0
                           ? context.seconds / profile.recorded_seconds * profile.CollectiveShare()
                           : 0;
    context.share = all;
    if (context.share >= least_share) contexts.push_back(context);
  }
  std::stable_sort(contexts.begin(), contexts.end(),
                   [](const Context& a, const Context& b) { return a.seconds > b.seconds; });
  if (contexts.size() > most) contexts.resize(most);
  return contexts;
}

std::vector<double> CallSeconds(const MpiProfile& profile, const std::vector<Context>& contexts) {
  std::vector<double> seconds;
  for (const Context& context : contexts) {
    double sum = 0;
    uint64_t calls = 0;
    for (const MpiCallClass& one : profile.classes) {
      if (one.fixed != Fixed::kNo || CollectiveOf(one.call) != context.collective ||
          SizeBand(one.bytes) != context.band || one.ranks != context.ranks) {
        continue;
      }
      sum += one.median * static_cast<double>(one.calls);
      calls += one.calls;
    }
    seconds.push_back(calls > 0 ? sum / static_cast<double>(calls) : 0);
  }
  return seconds;
}

std::vector<Config> CandidatesOf(const Context& context) {
  std::vector<Config> configs = {{}};
  for (const int algorithm : Algorithms(Library::kOpenMpi, context.collective)) {
    const std::string_view name = AlgorithmName(Library::kOpenMpi, context.collective, algorithm);
    if (!Works(name, context.ranks)) continue;
    configs.push_back({algorithm, kKeep, 0, 0});
    if (!UsesSegments(context.collective, name)) continue;
    for (const int64_t segment : kSegments) {
      if (static_cast<uint64_t>(segment) < context.usual_bytes) {
        configs.push_back({algorithm, kKeep, 0, segment});
      }
    }
  }
  return configs;
}

policy::Policy PolicyOf(const std::vector<Context>& contexts, const std::vector<Config>& configs,
                        std::vector<std::string>* remarks) {
  policy::Policy policy;
  policy.library = Library::kOpenMpi;
  for (size_t i = 0; i < contexts.size(); ++i) {
    if (configs[i].IsDefault()) continue;
    policy::Rule rule;
    rule.collective = contexts[i].collective;
    rule.min_bytes = contexts[i].least_bytes;
    rule.max_bytes = contexts[i].most_bytes;
    rule.ranks = contexts[i].ranks;
    rule.config = configs[i];
    policy.rules.push_back(rule);
    if (remarks != nullptr) {
      remarks->push_back(
          Format("{:.0f} % of the program's time with the default", 100 * contexts[i].share));
    }
  }
  return policy;
}

}  // namespace diapason::mpi_tune
