#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "domain/decision.h"
#include "domain/vocabulary.h"

namespace diapason::policy {

// "Any value matches", for nodes, ranks, numPipeOps and regBuff.
inline constexpr int kAny = -1;

// One row of a policy: for these calls, run that configuration. The first row that matches wins.
struct Rule {
  Collective collective = Collective::kAllReduce;
  uint64_t min_bytes = 0;
  uint64_t max_bytes = 0;  // inclusive
  Config config;
  int64_t nodes = kAny;
  int64_t ranks = kAny;
  int pipe_ops = kAny;
  int reg_buff = kAny;
  int line = 0;  // in the file, from 1
  // Marked by a line "# numerics: safe" before it: whoever wrote it knows that the last bits of
  // sums may change.
  bool safe = false;
  // What a line "# learned: ..." before it says; kept when the policy is written again.
  std::string remark;

  bool MatchesShape(const Shape& shape) const {
    return (nodes == kAny || nodes == shape.nodes) && (ranks == kAny || ranks == shape.ranks);
  }
  // Every call that matches `other` matches this rule too.
  bool Covers(const Rule& other) const;
};

// What the `# diapason:` comment of a file says about it. All of it is optional.
struct PolicyHeader {
  int version = 1;
  std::string origin;       // who made the policy, from what
  std::string fingerprint;  // the machine it was made for, see domain/fingerprint.h
};

// A policy as read from a file: rows in their order, all in one library's vocabulary. The format is
// described in docs/formats/policy.md.
struct Policy {
  Library library = Library::kNccl;
  PolicyHeader header;
  std::vector<Rule> rules;
};

// What lines before a row say about it; other comments are skipped.
inline constexpr std::string_view kSafeMark = "# numerics: safe";
inline constexpr std::string_view kLearnedMark = "# learned:";

// Limits of what is accepted. A file beyond them is refused, not cut.
inline constexpr size_t kMostBytes = 16u << 20;
inline constexpr size_t kMostRules = 65536;
inline constexpr size_t kLongestLine = 4096;
// Different values of (numPipeOps, regBuff) that the rows of one collective may ask for.
inline constexpr size_t kMostConditions = 64;

// The row as a policy file has it, ten columns.
std::string RuleText(Library library, const Rule& rule);

// The whole policy as a file: header with checksum, column names, rows. A remark, where there is
// one for a row, stands on a line of its own before it, which every reader of such files skips.
std::string PolicyText(const Policy& policy, const std::vector<std::string>& remarks = {});

// A number for "the same rules for the same library": the checksum of the header, and what ranks
// compare. Comments, blanks and spellings do not change it.
uint64_t Digest(const Policy& policy);
// "fnv1a64:0123456789abcdef"
std::string DigestText(uint64_t digest);

}  // namespace diapason::policy
