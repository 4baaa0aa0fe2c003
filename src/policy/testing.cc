#include "policy/testing.h"

#include <utility>
#include <vector>

#include "base/file.h"

namespace diapason::policy {
namespace {

template <typename T>
T PickFrom(std::mt19937_64* random, const std::vector<T>& values) {
  return values[Pick(random, values.size())];
}

Rule RandomRule(Library library, std::mt19937_64* random) {
  const bool asks = AsksTuner(library);
  Rule rule;
  rule.collective =
      static_cast<Collective>(Pick(random, asks ? kAskedCollectiveCount : kCollectiveCount));
  rule.min_bytes = RandomBytes(random);
  rule.max_bytes = RandomBytes(random);
  if (rule.min_bytes > rule.max_bytes) std::swap(rule.min_bytes, rule.max_bytes);
  std::vector<int> algorithms = Algorithms(library, rule.collective);
  std::vector<int> protocols = Protocols(library);
  algorithms.push_back(kKeep);
  protocols.push_back(kKeep);
  rule.config.algorithm = PickFrom(random, algorithms);
  rule.config.protocol = PickFrom(random, protocols);
  rule.config.channels =
      static_cast<int>(Pick(random, static_cast<uint64_t>(ChannelLimit(library)) + 1));
  rule.nodes = PickFrom<int64_t>(random, {kAny, kAny, 1, 2, 4});
  rule.ranks = PickFrom<int64_t>(random, {kAny, kAny, 8, 16});
  rule.pipe_ops = PickFrom<int>(random, {kAny, kAny, 0, 1, 2});
  rule.reg_buff = PickFrom<int>(random, {kAny, kAny, 0, 1});
  return rule;
}

}  // namespace

uint64_t Pick(std::mt19937_64* random, uint64_t below) { return (*random)() % below; }

uint64_t RandomBytes(std::mt19937_64* random) {
  switch (Pick(random, 6)) {
    case 0:
      return Pick(random, 40);
    case 1:
      return (uint64_t{1} << Pick(random, 64)) - Pick(random, 2);
    case 2:
      return UINT64_MAX - Pick(random, 3);
    default:
      return (*random)() >> Pick(random, 64);
  }
}

Policy RandomPolicy(Library library, size_t rules, std::mt19937_64* random) {
  Policy policy;
  policy.library = library;
  int line = 0;
  for (size_t i = 0; i < rules; ++i) {
    Rule rule = RandomRule(library, random);
    line += 1 + static_cast<int>(Pick(random, 3));
    rule.line = line;
    policy.rules.push_back(rule);
  }
  return policy;
}

std::string ReadTestFile(const std::string& name) {
  return ReadFile(DIAPASON_SOURCE_DIR "/tests/data/tuner-confs/" + name, kMostBytes).value();
}

}  // namespace diapason::policy
