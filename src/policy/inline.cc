#include "policy/inline.h"

#include <array>
#include <set>
#include <utility>

#include "base/encoding.h"
#include "base/text.h"

namespace diapason::policy {
namespace {

constexpr std::string_view kPrefix = "d1.";
constexpr size_t kChecksumDigits = 16;

std::string Checksum(std::string_view word) { return Format("{:016x}", Fnv1a64(word)); }

void AppendText(std::string* out, const std::string& text) {
  AppendVarint(out, text.size());
  *out += text;
}

bool TakeText(std::string_view* bytes, std::string* text) {
  uint64_t length = 0;
  if (!TakeVarint(bytes, &length) || length > bytes->size()) return false;
  *text = bytes->substr(0, length);
  bytes->remove_prefix(length);
  return true;
}

// Added to a row's collective if the row is marked as safe for numerics.
constexpr uint64_t kSafeBit = 16;
// And if a segment size follows the row.
constexpr uint64_t kSegmentBit = 32;

// Consecutive rows have similar sizes and lines: differences are shorter than values.
uint64_t ZigZag(uint64_t difference) { return (difference << 1) ^ (0 - (difference >> 63)); }
uint64_t UnZigZag(uint64_t value) { return (value >> 1) ^ (0 - (value & 1)); }

void AppendRule(std::string* out, const Rule& rule, const Rule& previous) {
  AppendVarint(out,
               ZigZag(static_cast<uint64_t>(rule.line) - static_cast<uint64_t>(previous.line)));
  const bool segment = rule.config.segment_bytes > 0;
  AppendVarint(out, static_cast<uint64_t>(rule.collective) | (rule.safe ? kSafeBit : 0) |
                        (segment ? kSegmentBit : 0));
  AppendVarint(out, ZigZag(rule.min_bytes - previous.max_bytes));
  AppendVarint(out, rule.max_bytes - rule.min_bytes);
  for (const int64_t value :
       {static_cast<int64_t>(rule.config.algorithm), static_cast<int64_t>(rule.config.protocol),
        static_cast<int64_t>(rule.config.channels), rule.nodes, rule.ranks,
        static_cast<int64_t>(rule.pipe_ops), static_cast<int64_t>(rule.reg_buff)}) {
    AppendVarint(out, static_cast<uint64_t>(value + 1));
  }
  if (segment) AppendVarint(out, static_cast<uint64_t>(rule.config.segment_bytes));
}

bool TakeRule(std::string_view* bytes, const Rule& previous, Rule* rule) {
  uint64_t line = 0;
  uint64_t collective = 0;
  uint64_t from = 0;
  uint64_t length = 0;
  uint64_t rest[7] = {};
  if (!TakeVarint(bytes, &line) || !TakeVarint(bytes, &collective) || !TakeVarint(bytes, &from) ||
      !TakeVarint(bytes, &length)) {
    return false;
  }
  for (uint64_t& value : rest) {
    if (!TakeVarint(bytes, &value) || value > uint64_t{INT32_MAX} + 1) return false;
  }
  uint64_t segment = 0;
  if ((collective & kSegmentBit) != 0 &&
      (!TakeVarint(bytes, &segment) || segment == 0 || segment > uint64_t{INT32_MAX})) {
    return false;
  }
  rule->config.segment_bytes = static_cast<int64_t>(segment);
  line = static_cast<uint64_t>(previous.line) + UnZigZag(line);
  rule->safe = (collective & kSafeBit) != 0;
  collective &= ~(kSafeBit | kSegmentBit);
  if (line > static_cast<uint64_t>(INT32_MAX) || collective >= kCollectiveCount) return false;
  rule->line = static_cast<int>(line);
  rule->collective = static_cast<Collective>(collective);
  rule->min_bytes = previous.max_bytes + UnZigZag(from);
  if (__builtin_add_overflow(rule->min_bytes, length, &rule->max_bytes)) return false;
  const auto value = [&rest](int i) { return static_cast<int64_t>(rest[i]) - 1; };
  rule->config.algorithm = static_cast<int>(value(0));
  rule->config.protocol = static_cast<int>(value(1));
  rule->config.channels = static_cast<int>(value(2));
  rule->nodes = value(3);
  rule->ranks = value(4);
  rule->pipe_ops = static_cast<int>(value(5));
  rule->reg_buff = static_cast<int>(value(6));
  return true;
}

// A correct checksum does not prove the origin: every value must be valid in a policy file.
bool RuleIsValid(Library library, const Rule& rule) {
  const std::string_view algorithm = AlgorithmName(library, rule.collective, rule.config.algorithm);
  const bool known_algorithm =
      rule.config.algorithm == kKeep || ParseAlgorithm(library, rule.collective, algorithm).ok();
  const bool known_protocol =
      rule.config.protocol == kKeep || ProtocolName(library, rule.config.protocol) != "?";
  return ParseCollective(library, CollectiveName(rule.collective)).ok() && known_algorithm &&
         known_protocol &&
         (rule.config.segment_bytes == 0 ||
          (HasSegments(library) && rule.config.algorithm != kKeep)) &&
         rule.config.channels >= 0 && rule.config.channels <= ChannelLimit(library) &&
         rule.nodes != 0 && rule.ranks != 0 && rule.reg_buff <= 1;
}

}  // namespace

std::string EncodeInline(const Policy& policy) {
  std::string bytes;
  AppendVarint(&bytes, static_cast<uint64_t>(policy.library));
  AppendText(&bytes, policy.header.origin);
  AppendText(&bytes, policy.header.fingerprint);
  AppendVarint(&bytes, policy.rules.size());
  Rule previous;
  for (const Rule& rule : policy.rules) {
    AppendRule(&bytes, rule, previous);
    previous = rule;
  }
  const std::string body = std::string(kPrefix) + EncodeBase64Url(bytes);
  return body + "." + Checksum(body);
}

Result<Policy> DecodeInline(std::string_view text) {
  text = Trim(text);
  if (!text.starts_with(kPrefix)) {
    return Invalid(
        "the inline policy does not begin with 'd1.': `diapason policy env FILE` writes "
        "one");
  }
  if (text.size() < kPrefix.size() + 1 + kChecksumDigits ||
      text[text.size() - kChecksumDigits - 1] != '.') {
    return Invalid("the inline policy is cut short");
  }
  const std::string_view body = text.substr(0, text.size() - kChecksumDigits - 1);
  if (text.substr(text.size() - kChecksumDigits) != Checksum(body)) {
    return Invalid(
        "the inline policy does not add up to its checksum: it was cut short or changed");
  }
  const Result<std::string> decoded = DecodeBase64Url(body.substr(kPrefix.size()));
  if (!decoded.ok()) return decoded.status().WithContext("inline policy");

  const Status malformed = Invalid("the inline policy is malformed");
  std::string_view bytes = decoded.value();
  Policy policy;
  uint64_t library = 0;
  uint64_t count = 0;
  if (!TakeVarint(&bytes, &library) || library >= kLibraryCount ||
      !TakeText(&bytes, &policy.header.origin) || !TakeText(&bytes, &policy.header.fingerprint) ||
      !TakeVarint(&bytes, &count) || count > kMostRules) {
    return malformed;
  }
  policy.library = static_cast<Library>(library);
  std::array<std::set<std::pair<int, int>>, kCollectiveCount> conditions;
  Rule previous;
  for (uint64_t i = 0; i < count; ++i) {
    Rule rule;
    if (!TakeRule(&bytes, previous, &rule) || !RuleIsValid(policy.library, rule)) return malformed;
    auto& asked = conditions[static_cast<size_t>(rule.collective)];
    asked.insert({rule.pipe_ops, rule.reg_buff});
    if (asked.size() > kMostConditions) return malformed;
    policy.rules.push_back(rule);
    previous = rule;
  }
  if (!bytes.empty()) return malformed;
  return policy;
}

}  // namespace diapason::policy
