#include "job_tune/blocks.h"

#include <algorithm>
#include <optional>

#include "base/stats.h"
#include "domain/schedule.h"
#include "job_profile/iterations.h"

namespace diapason::job_tune {
namespace {

using job_profile::Call;
using job_profile::RankIteration;
using job_profile::RankIterations;
using job_profile::Timeline;

// The collectives of the iteration before may still run when the first one of a block begins, and
// its last one waits for calls of the next.
constexpr size_t kBorder = 1;
constexpr size_t kLeastIterations = 3;

std::optional<size_t> ContextOf(const Call& call, const std::vector<job_profile::Role>& roles,
                                const std::vector<JobContext>& contexts) {
  const job_profile::Role& role = roles[call.role];
  for (size_t i = 0; i < contexts.size(); ++i) {
    if (contexts[i].Has(role.library, role.shape, call.collective, call.bytes)) return i;
  }
  return std::nullopt;
}

// The setting of an iteration; nothing if a context ran two configurations, or one that is unknown.
std::optional<Block> SettingOf(const Timeline& timeline, const RankIteration& iteration,
                               const std::vector<job_profile::Role>& roles,
                               const std::vector<JobContext>& contexts) {
  Block block;
  block.setting.resize(contexts.size());
  block.seen.resize(contexts.size(), false);
  for (size_t i = iteration.first; i < iteration.end; ++i) {
    const Call& call = timeline.calls[i];
    const std::optional<size_t> context = ContextOf(call, roles, contexts);
    if (!context || call.captured || call.bypassed) continue;
    if (!call.decided) return std::nullopt;
    if (block.seen[*context] && block.setting[*context] != call.asked) return std::nullopt;
    block.seen[*context] = true;
    block.setting[*context] = call.asked;
  }
  return block;
}

bool Fits(const Block& block, const JobSetting& asked) {
  bool any = false;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (!block.seen[i]) continue;
    any = true;
    if (block.setting[i] != asked[i]) return false;
  }
  return any;
}

}  // namespace

std::vector<Block> BlocksOf(const Timeline& timeline, const std::vector<job_profile::Role>& roles,
                            const std::vector<JobContext>& contexts,
                            const job_profile::CountedCalls& counted) {
  const RankIterations found = counted.per_iteration > 0
                                   ? job_profile::CountIterations(timeline, roles, counted)
                                   : job_profile::FindIterations(timeline);
  std::vector<Block> blocks;
  bool joined = false;  // the iteration before belongs to the last block
  for (const RankIteration& one : found.timed) {
    std::optional<Block> block = SettingOf(timeline, one, roles, contexts);
    if (!block) {
      joined = false;
      continue;
    }
    const bool same =
        joined && blocks.back().setting == block->setting && blocks.back().seen == block->seen;
    if (!same) blocks.push_back(*std::move(block));
    blocks.back().seconds.push_back(one.length);
    joined = true;
  }
  for (Block& block : blocks) {
    block.all = block.seconds.size();
    const size_t border = block.all > 2 * kBorder + kLeastIterations ? kBorder : 0;
    block.seconds.erase(block.seconds.end() - static_cast<ptrdiff_t>(border), block.seconds.end());
    block.seconds.erase(block.seconds.begin(),
                        block.seconds.begin() + static_cast<ptrdiff_t>(border));
  }
  return blocks;
}

std::vector<learn::SegmentResult> ResultsOf(const std::vector<JobSetting>& asked,
                                            const std::vector<Block>& blocks) {
  std::vector<std::vector<double>> seconds(asked.size());
  size_t at = 0;
  for (const Block& block : blocks) {
    // An iteration that differs now and then cuts a block in two.
    size_t next = at;
    while (next < asked.size() && !Fits(block, asked[next])) ++next;
    if (next == asked.size()) continue;
    at = next;
    seconds[at].insert(seconds[at].end(), block.seconds.begin(), block.seconds.end());
  }
  std::vector<learn::SegmentResult> results(asked.size());
  for (size_t i = 0; i < asked.size(); ++i) {
    if (seconds[i].size() < kLeastIterations) continue;
    results[i].samples = static_cast<uint32_t>(seconds[i].size());
    results[i].seconds = Median(seconds[i]);
  }
  return results;
}

}  // namespace diapason::job_tune
