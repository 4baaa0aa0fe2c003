#include "policy/policy.h"

#include <algorithm>
#include <charconv>

#include "base/encoding.h"
#include "base/printable.h"
#include "base/text.h"

namespace diapason::policy {
namespace {

std::string Rows(const Policy& policy) {
  std::string text;
  for (const Rule& rule : policy.rules) {
    text += RuleText(policy.library, rule);
    if (rule.safe) text += " safe";
    text += '\n';
  }
  return text;
}

std::string Quoted(const std::string& text) {
  // Quotes and line ends would end the field, so they are replaced. Truncated so that the header's
  // line stays within the reader's limit.
  constexpr size_t kLongest = 512;
  std::string clean = text.substr(0, kLongest);
  std::replace_if(
      clean.begin(), clean.end(), [](char c) { return c == '"'; }, '\'');
  std::replace_if(
      clean.begin(), clean.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return '"' + Printable(clean).substr(0, kLongest) + '"';
}

}  // namespace

bool Rule::Covers(const Rule& other) const {
  const auto covers = [](int64_t mine, int64_t theirs) { return mine == kAny || mine == theirs; };
  return collective == other.collective && min_bytes <= other.min_bytes &&
         max_bytes >= other.max_bytes && covers(nodes, other.nodes) && covers(ranks, other.ranks) &&
         covers(pipe_ops, other.pipe_ops) && covers(reg_buff, other.reg_buff);
}

std::string RuleText(Library library, const Rule& rule) {
  // Not printf, which is slow: the digest of a large policy is computed at init of a communicator.
  std::string text;
  const auto field = [&text](std::string_view word) {
    if (!text.empty()) text += ',';
    text += word;
  };
  const auto number = [&field](auto value) {
    char digits[24];
    const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), value);
    (void)error;  // every 64-bit number fits
    field({digits, static_cast<size_t>(end - digits)});
  };
  field(CollectiveName(rule.collective));
  number(rule.min_bytes);
  number(rule.max_bytes);
  field(AlgorithmName(library, rule.collective, rule.config.algorithm));
  field(ProtocolName(library, rule.config.protocol));
  number(rule.config.channels > 0 ? rule.config.channels : -1);
  number(rule.nodes);
  number(rule.ranks);
  number(rule.pipe_ops);
  number(rule.reg_buff);
  // Without it the row is one that every reader of such files knows.
  if (rule.config.segment_bytes > 0) number(rule.config.segment_bytes);
  return text;
}

std::string PolicyText(const Policy& policy, const std::vector<std::string>& remarks) {
  std::string text =
      Format("# diapason: version={} library={} checksum={}\n", policy.header.version,
             std::string(LibraryName(policy.library)), DigestText(Digest(policy)));
  if (!policy.header.origin.empty()) {
    text += "# diapason: origin=" + Quoted(policy.header.origin) + "\n";
  }
  if (!policy.header.fingerprint.empty()) {
    text += "# diapason: fingerprint=" + Quoted(policy.header.fingerprint) + "\n";
  }
  text +=
      "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,"
      "numPipeOps,regBuff";
  const bool segments = std::any_of(policy.rules.begin(), policy.rules.end(),
                                    [](const Rule& rule) { return rule.config.segment_bytes > 0; });
  text += segments ? ",segmentBytes\n" : "\n";
  for (size_t i = 0; i < policy.rules.size(); ++i) {
    const Rule& rule = policy.rules[i];
    if (i < remarks.size() && !remarks[i].empty()) text += "# " + remarks[i] + "\n";
    if (!rule.remark.empty()) text += std::string(kLearnedMark) + " " + rule.remark + "\n";
    if (rule.safe) text += std::string(kSafeMark) + "\n";
    text += RuleText(policy.library, policy.rules[i]) + "\n";
  }
  return text;
}

uint64_t Digest(const Policy& policy) {
  return Fnv1a64(std::string(LibraryName(policy.library)) + "\n" + Rows(policy));
}

std::string DigestText(uint64_t digest) { return Format("fnv1a64:{:016x}", digest); }

}  // namespace diapason::policy
