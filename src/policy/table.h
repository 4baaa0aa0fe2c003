#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "domain/decision.h"
#include "policy/policy.h"

namespace diapason::policy {

// A piecewise constant function from message size to a small number. Lookup takes the same few
// nanoseconds for four ranges and for thousands, if they are spread over the sizes; for dense
// ranges it is a binary search among them. Find never allocates.
class SizeMap {
 public:
  struct Range {
    uint64_t start;  // the range extends to the next one's start
    uint32_t value;
  };
  // REQUIRES: ranges are sorted by start, the first starts at 0.
  explicit SizeMap(std::vector<Range> ranges);

  uint32_t Find(uint64_t bytes) const noexcept {
    const Octave& octave = octaves_[std::bit_width(bytes)];
    const uint64_t bucket = octave.first_bucket + ((bytes - octave.base) >> octave.shift);
    // The range is one of those that overlap the bucket: [low, high]. Nearly always these are one
    // or two, and one comparison without a branch decides.
    uint32_t low = buckets_[bucket];
    const uint32_t high = buckets_[bucket + 1];
    if (high - low > 1) [[unlikely]] {
      low = Search(low, high, bytes);
    } else {
      low +=
          static_cast<uint32_t>(low < high) & static_cast<uint32_t>(ranges_[high].start <= bytes);
    }
    return ranges_[low].value;
  }
  size_t MemoryBytes() const;

 private:
  // Sizes with the same number of bits, divided into 2^n buckets of equal width.
  struct Octave {
    uint64_t base = 0;
    uint32_t first_bucket = 0;
    uint32_t shift = 0;
  };
  Octave octaves_[65];
  uint32_t Search(uint32_t low, uint32_t high, uint64_t bytes) const noexcept;

  std::vector<uint32_t>
      buckets_;  // bucket -> the range that contains its first size; one more at the end
  std::vector<Range> ranges_;
};

// A policy compiled for one communicator: without the rows that cannot match its shape, the rest
// arranged by size. Immutable after construction and thread-safe.
//
// A question is looked up in at most four size maps: rows without conditions, with its numPipeOps,
// with its regBuff, or with both. The lowest row among the results is the first match.
class DecisionTable {
 public:
  struct Entry {
    int8_t algorithm = kKeep;
    int8_t protocol = kKeep;
    int16_t channels = 0;
    int32_t line = 0;
    int32_t segment_bytes = 0;
    Config config() const { return {algorithm, protocol, channels, segment_bytes}; }
    bool names_pair() const { return algorithm != kKeep && protocol != kKeep; }
  };

  struct Options {
    Shape shape;
    bool use_reg_buff_rows = false;
    // Tuner API v1 does not say which communicator asks: only rows for any shape are safe.
    bool any_shape_rows_only = false;
  };

  DecisionTable() = default;
  DecisionTable(const Policy& policy, const Options& options);
  // A move keeps the maps in place; a copy would point into the original.
  DecisionTable(DecisionTable&&) = default;
  DecisionTable& operator=(DecisionTable&&) = default;

  // The first row that matches, or nullptr. No allocation, lock or system call.
  const Entry* Find(const Question& question) const noexcept {
    const auto collective = static_cast<size_t>(question.collective);
    if (collective >= kCollectiveCount) return nullptr;
    const PerCollective& maps = collectives_[collective];
    uint32_t row = maps.unconditional == nullptr ? kNone : maps.unconditional->Find(question.bytes);
    if (maps.conditional_begin != maps.conditional_end) [[unlikely]] {
      row = FindConditional(maps, question, row);
    }
    return row == kNone ? nullptr : &entries_[row];
  }

  size_t row_count() const { return entries_.size(); }
  // Rows left out, by reason.
  size_t skipped_reg_buff_rows() const { return skipped_reg_buff_rows_; }
  size_t skipped_shape_rows() const { return skipped_shape_rows_; }
  size_t MemoryBytes() const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Conditional {
    int pipe_ops;
    int reg_buff;
    const SizeMap* map;
  };
  struct PerCollective {
    const SizeMap* unconditional = nullptr;
    uint32_t conditional_begin = 0;  // into conditionals_, sorted by (pipe_ops, reg_buff)
    uint32_t conditional_end = 0;
  };

  uint32_t FindConditional(const PerCollective& maps, const Question& question,
                           uint32_t row) const noexcept;
  void BuildCollective(Collective collective, const std::vector<Rule>& rules);

  PerCollective collectives_[kCollectiveCount];
  std::vector<Conditional> conditionals_;
  std::vector<std::unique_ptr<const SizeMap>> maps_;
  std::vector<Entry> entries_;  // rows that can match, in file order
  size_t skipped_reg_buff_rows_ = 0;
  size_t skipped_shape_rows_ = 0;
};

// The decision by size range for display, including gaps (entry == nullptr).
struct ShownRange {
  uint64_t first = 0;
  uint64_t last = 0;
  const DecisionTable::Entry* entry = nullptr;
};
// The decisions of `table` for one collective over all sizes, found by asking it at every size
// where the answer can change.
std::vector<ShownRange> ShowRanges(const DecisionTable& table, const Policy& policy,
                                   const Question& question);

}  // namespace diapason::policy
