#include "mpi_tune/trials.h"

#include <algorithm>
#include <cmath>

namespace diapason::mpi_tune {
namespace {

auto Find(std::vector<InProgram>& tried, const Config& config) {
  return std::find_if(tried.begin(), tried.end(),
                      [&](const InProgram& one) { return one.config == config; });
}

}  // namespace

void Trials::Add(const std::vector<Config>& configs, const std::vector<double>& seconds) {
  for (size_t i = 0; i < configs.size(); ++i) {
    if (seconds[i] <= 0) continue;
    std::vector<InProgram>& tried = tried_[i];
    auto at = Find(tried, configs[i]);
    if (at == tried.end()) {
      at =
          tried.insert(configs[i].IsDefault() ? tried.begin() : tried.end(), {configs[i], 0, 1, 0});
    }
    if (configs[i].IsDefault()) last_default_[i] = seconds[i];
    const double ratio = last_default_[i] > 0 ? seconds[i] / last_default_[i] : 1;
    const double all = at->launches + 1;
    at->seconds += (seconds[i] - at->seconds) / all;
    at->ratio = std::exp((std::log(at->ratio) * at->launches + std::log(ratio)) / all);
    ++at->launches;
  }
}

std::vector<Config> Trials::Best(size_t n, double most_ratio) const {
  std::vector<Config> best;
  for (const std::vector<InProgram>& tried : tried_) {
    std::vector<InProgram> ranked;
    for (const InProgram& one : tried) {
      if (!one.config.IsDefault() && one.ratio <= most_ratio) ranked.push_back(one);
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const InProgram& a, const InProgram& b) { return a.ratio < b.ratio; });
    best.push_back(n < ranked.size() ? ranked[n].config : Config{});
  }
  return best;
}

std::vector<std::vector<InProgram>> FinalsFirst(const Trials& finals, const Trials& screening) {
  std::vector<std::vector<InProgram>> all = finals.tried();
  for (size_t i = 0; i < all.size(); ++i) {
    for (const InProgram& one : screening.tried()[i]) {
      if (Find(all[i], one.config) == all[i].end()) all[i].push_back(one);
    }
    const auto by_ratio = [](const InProgram& a, const InProgram& b) {
      if (a.config.IsDefault() != b.config.IsDefault()) return a.config.IsDefault();
      return a.ratio < b.ratio;
    };
    const auto again = all[i].begin() + static_cast<ptrdiff_t>(finals.tried()[i].size());
    std::stable_sort(all[i].begin(), again, by_ratio);
    std::stable_sort(again, all[i].end(), by_ratio);
  }
  return all;
}

bool AllDefault(const std::vector<Config>& configs) {
  return std::all_of(configs.begin(), configs.end(),
                     [](const Config& one) { return one.IsDefault(); });
}

}  // namespace diapason::mpi_tune
