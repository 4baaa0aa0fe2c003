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
  // Marked by a line "# numerics: safe" before it: the author accepts that the rounding of sums may
  // change.
  bool safe = false;
  // The text of a line "# learned: ..." before it; kept when the policy is written again.
  std::string remark;

  bool MatchesShape(const Shape& shape) const {
    return (nodes == kAny || nodes == shape.nodes) && (ranks == kAny || ranks == shape.ranks);
  }
  // Whether every call that matches `other` matches this rule too.
  bool Covers(const Rule& other) const;
};

// The fields of a file's `# diapason:` comment. All are optional.
struct PolicyHeader {
  int version = 1;
  std::string origin;       // the policy's author or tool, and its source
  std::string fingerprint;  // the machine it was made for, see domain/fingerprint.h
};

// A policy as read from a file: rows in order, all in one library's vocabulary.
// docs/formats/policy.md describes the format.
struct Policy {
  Library library = Library::kNccl;
  PolicyHeader header;
  std::vector<Rule> rules;
};

// Comments before a row that apply to it; other comments are skipped.
inline constexpr std::string_view kSafeMark = "# numerics: safe";
inline constexpr std::string_view kLearnedMark = "# learned:";

// Limits of accepted files. A larger file is rejected, not truncated.
inline constexpr size_t kMostBytes = 16u << 20;
inline constexpr size_t kMostRules = 65536;
inline constexpr size_t kLongestLine = 4096;
// Limit on the different values of (numPipeOps, regBuff) in the rows of one collective.
inline constexpr size_t kMostConditions = 64;

// The row as in a policy file: ten columns, and an eleventh where it has a segment size.
std::string RuleText(Library library, const Rule& rule);

// The whole policy as a file: header with checksum, column names, rows. A row's remark is on a line
// of its own before it, which every reader of such files skips.
std::string PolicyText(const Policy& policy, const std::vector<std::string>& remarks = {});

// A digest of the library and its rules: the checksum in the header, which ranks compare. Comments,
// blanks and spellings do not affect it.
uint64_t Digest(const Policy& policy);
// "fnv1a64:0123456789abcdef"
std::string DigestText(uint64_t digest);

}  // namespace diapason::policy
