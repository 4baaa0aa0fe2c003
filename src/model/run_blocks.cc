#include "model/run_blocks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/stats.h"

namespace diapason::model {
namespace {

using Block = std::pair<size_t, int>;

std::map<Block, std::vector<double>> ByBlock(const dataset::ConfigSummary& entry) {
  std::map<Block, std::vector<double>> blocks;
  for (size_t i = 0; i < entry.seconds.size(); ++i) {
    blocks[entry.blocks[i]].push_back(entry.seconds[i]);
  }
  return blocks;
}

}  // namespace

AlignedGroup AlignRuns(const dataset::ConfigGroup& group) {
  AlignedGroup result;
  std::vector<AlignedSamples>& aligned = result.entries;
  aligned.resize(group.entries.size());
  std::set<Block> all;
  std::set<Block> compared;  // with something beside the library's own choice
  for (size_t i = 0; i < group.entries.size(); ++i) {
    const dataset::ConfigSummary& entry = group.entries[i];
    aligned[i].seconds = entry.seconds;
    all.insert(entry.blocks.begin(), entry.blocks.end());
    if (!entry.point.IsDefault()) compared.insert(entry.blocks.begin(), entry.blocks.end());
  }
  if (all.size() < 2 || !group.standard.has_value()) return result;
  // How long the library's own choice takes in each block, relative to all of them.
  std::map<Block, double> shifts;
  double sum = 0;
  double weight = 0;
  for (const auto& [block, seconds] : ByBlock(group.entries[*group.standard])) {
    const double middle = std::log(Median(seconds));
    const auto count = static_cast<double>(seconds.size());
    // A block with nothing else in it says nothing about gains.
    if (compared.count(block) == 0) continue;
    shifts[block] = middle;
    sum += count * middle;
    weight += count;
  }
  if (shifts.empty()) {
    result.apart = true;
    const bool timed =
        std::any_of(all.begin(), all.end(), [](const Block& block) { return block.second >= 0; });
    for (AlignedSamples& one : aligned) one.paired = !timed;
    return result;
  }
  for (size_t i = 0; i < group.entries.size(); ++i) {
    const dataset::ConfigSummary& entry = group.entries[i];
    std::vector<double> kept;
    for (size_t k = 0; k < entry.seconds.size(); ++k) {
      const auto shift = shifts.find(entry.blocks[k]);
      if (shift == shifts.end()) continue;
      kept.push_back(entry.seconds[k] * std::exp(sum / weight - shift->second));
    }
    if (kept.empty()) {
      aligned[i].paired = false;
      continue;
    }
    result.left_out += entry.seconds.size() - kept.size();
    aligned[i].seconds = std::move(kept);
  }
  return result;
}

}  // namespace diapason::model
