#include "policy/table.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>

namespace diapason::policy {
namespace {

constexpr uint32_t kNoRow = UINT32_MAX;

struct Span {
  uint64_t first;
  uint64_t last;  // inclusive
  uint32_t row;
};

// First match wins: for every size, the lowest row whose span contains it. A sweep over the ends of
// the spans with the open rows, lowest first.
std::vector<SizeMap::Range> Flatten(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.first < b.first; });
  std::vector<uint64_t> cuts{0};
  for (const Span& span : spans) {
    cuts.push_back(span.first);
    if (span.last != UINT64_MAX) cuts.push_back(span.last + 1);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());

  const auto later = [](const Span& a, const Span& b) { return a.row > b.row; };
  std::priority_queue<Span, std::vector<Span>, decltype(later)> open(later);
  std::vector<SizeMap::Range> ranges;
  size_t next = 0;
  for (const uint64_t cut : cuts) {
    while (next < spans.size() && spans[next].first == cut) open.push(spans[next++]);
    while (!open.empty() && open.top().last < cut) open.pop();
    const uint32_t row = open.empty() ? kNoRow : open.top().row;
    if (ranges.empty() || ranges.back().value != row) ranges.push_back({cut, row});
  }
  return ranges;
}

}  // namespace

SizeMap::SizeMap(std::vector<Range> ranges) : ranges_(std::move(ranges)) {
  const auto starts_before = [](const Range& range, uint64_t size) { return range.start < size; };
  size_t range = 0;
  for (uint32_t bits = 0; bits <= 64; ++bits) {
    const uint64_t base = bits == 0 ? 0 : uint64_t{1} << (bits - 1);
    const uint64_t last = bits == 0 ? 0 : base + (base - 1);
    const auto begin = std::lower_bound(ranges_.begin(), ranges_.end(), base, starts_before);
    const auto end = last == UINT64_MAX
                         ? ranges_.end()
                         : std::lower_bound(begin, ranges_.end(), last + 1, starts_before);
    // Two to four buckets for each range that begins here, but never more buckets than sizes.
    const auto begins = static_cast<uint64_t>(end - begin);
    const uint32_t width_bits = bits == 0 ? 0 : bits - 1;
    const uint32_t bucket_bits = std::min<uint32_t>(
        width_bits, begins == 0 ? 0 : static_cast<uint32_t>(std::bit_width(begins)) + 1);
    octaves_[bits] = {base, static_cast<uint32_t>(buckets_.size()), width_bits - bucket_bits};
    for (uint64_t i = 0; i < (uint64_t{1} << bucket_bits); ++i) {
      const uint64_t first_size = base + (i << (width_bits - bucket_bits));
      while (range + 1 < ranges_.size() && ranges_[range + 1].start <= first_size) ++range;
      buckets_.push_back(static_cast<uint32_t>(range));
    }
  }
  buckets_.push_back(static_cast<uint32_t>(ranges_.size() - 1));
  buckets_.shrink_to_fit();
  ranges_.shrink_to_fit();
}

uint32_t SizeMap::Search(uint32_t low, uint32_t high, uint64_t bytes) const noexcept {
  while (low < high) {
    const uint32_t middle = low + (high - low + 1) / 2;
    if (ranges_[middle].start <= bytes) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

size_t SizeMap::MemoryBytes() const {
  return sizeof(*this) + buckets_.capacity() * sizeof(buckets_[0]) +
         ranges_.capacity() * sizeof(ranges_[0]);
}

DecisionTable::DecisionTable(const Policy& policy, const Options& options) {
  std::vector<Rule> rules;
  for (const Rule& rule : policy.rules) {
    const bool names_shape = rule.nodes != kAny || rule.ranks != kAny;
    if (options.any_shape_rows_only && names_shape) {
      ++skipped_shape_rows_;
      continue;
    }
    if (!options.any_shape_rows_only && !rule.MatchesShape(options.shape)) continue;
    if (rule.reg_buff != kAny && !options.use_reg_buff_rows) {
      ++skipped_reg_buff_rows_;
      continue;
    }
    rules.push_back(rule);
    entries_.push_back({static_cast<int8_t>(rule.config.algorithm),
                        static_cast<int8_t>(rule.config.protocol),
                        static_cast<int16_t>(rule.config.channels), rule.line,
                        static_cast<int32_t>(rule.config.segment_bytes)});
  }
  entries_.shrink_to_fit();
  for (int c = 0; c < kCollectiveCount; ++c) BuildCollective(static_cast<Collective>(c), rules);
  conditionals_.shrink_to_fit();
  maps_.shrink_to_fit();
}

void DecisionTable::BuildCollective(Collective collective, const std::vector<Rule>& rules) {
  std::map<std::pair<int, int>, std::vector<Span>> by_condition;
  for (size_t i = 0; i < rules.size(); ++i) {
    const Rule& rule = rules[i];
    if (rule.collective != collective) continue;
    by_condition[{rule.pipe_ops, rule.reg_buff}].push_back(
        {rule.min_bytes, rule.max_bytes, static_cast<uint32_t>(i)});
  }
  PerCollective& maps = collectives_[static_cast<size_t>(collective)];
  maps.conditional_begin = static_cast<uint32_t>(conditionals_.size());
  for (auto& [condition, spans] : by_condition) {
    maps_.push_back(std::make_unique<const SizeMap>(Flatten(std::move(spans))));
    const SizeMap* map = maps_.back().get();
    if (condition == std::pair(kAny, kAny)) {
      maps.unconditional = map;
    } else {
      conditionals_.push_back({condition.first, condition.second, map});
    }
  }
  maps.conditional_end = static_cast<uint32_t>(conditionals_.size());
}

uint32_t DecisionTable::FindConditional(const PerCollective& maps, const Question& question,
                                        uint32_t row) const noexcept {
  const Conditional* begin = conditionals_.data() + maps.conditional_begin;
  const Conditional* end = conditionals_.data() + maps.conditional_end;
  const std::pair<int, int> wanted[] = {
      {question.pipe_ops, kAny}, {kAny, question.reg_buff}, {question.pipe_ops, question.reg_buff}};
  for (const auto& [pipe_ops, reg_buff] : wanted) {
    const Conditional* found = std::lower_bound(
        begin, end, std::tuple(pipe_ops, reg_buff),
        [](const Conditional& a, const auto& b) { return std::tuple(a.pipe_ops, a.reg_buff) < b; });
    if (found == end || found->pipe_ops != pipe_ops || found->reg_buff != reg_buff) continue;
    // kNone is the largest number: the smaller one is the earlier row.
    row = std::min(row, found->map->Find(question.bytes));
  }
  return row;
}

size_t DecisionTable::MemoryBytes() const {
  size_t bytes = sizeof(*this) + entries_.capacity() * sizeof(Entry) +
                 conditionals_.capacity() * sizeof(Conditional);
  for (const auto& map : maps_) bytes += map->MemoryBytes() + sizeof(map);
  return bytes;
}

std::vector<ShownRange> ShowRanges(const DecisionTable& table, const Policy& policy,
                                   const Question& question) {
  std::set<uint64_t> cuts{0};
  for (const Rule& rule : policy.rules) {
    if (rule.collective != question.collective) continue;
    cuts.insert(rule.min_bytes);
    if (rule.max_bytes != UINT64_MAX) cuts.insert(rule.max_bytes + 1);
  }
  std::vector<ShownRange> ranges;
  for (const uint64_t cut : cuts) {
    Question at = question;
    at.bytes = cut;
    const DecisionTable::Entry* entry = table.Find(at);
    if (ranges.empty() || ranges.back().entry != entry) {
      if (!ranges.empty()) ranges.back().last = cut - 1;
      ranges.push_back({cut, UINT64_MAX, entry});
    }
  }
  return ranges;
}

}  // namespace diapason::policy
