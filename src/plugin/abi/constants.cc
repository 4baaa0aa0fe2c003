#include "plugin/abi/constants.h"

#include <algorithm>
#include <cstring>

namespace diapason::plugin {
namespace {

constexpr size_t kLatencyBytes = (1 + 3) * 7 * 3 * sizeof(double);
constexpr size_t kLimits = 5;
// Of one generation: one node, two nodes, more.
constexpr size_t kRowBytes = 3 * sizeof(double);

constexpr size_t Generations(int api) { return api < 7 ? 4 : 5; }

static_assert(kLatencyBytes + kLimits * Generations(5) * kRowBytes == ConstantsBytes(5));
static_assert(kLatencyBytes + kLimits * Generations(6) * kRowBytes == ConstantsBytes(6));
static_assert(kLatencyBytes + kLimits * Generations(7) * kRowBytes == ConstantsBytes(7));

}  // namespace

void ConvertConstants(const abi::Constants* from, int from_api, abi::Constants* to, int to_api) {
  const auto* source = reinterpret_cast<const char*>(from);
  auto* target = reinterpret_cast<char*>(to);
  std::memcpy(target, source, kLatencyBytes);
  const size_t common = std::min(Generations(from_api), Generations(to_api)) * kRowBytes;
  for (size_t i = 0; i < kLimits; ++i) {
    std::memcpy(target + kLatencyBytes + i * Generations(to_api) * kRowBytes,
                source + kLatencyBytes + i * Generations(from_api) * kRowBytes, common);
  }
}

void KeptConstants::Keep(abi::Constants* constants, int api) {
  constants_ = constants;
  const char* bytes = reinterpret_cast<const char*>(constants);
  if (constants != nullptr) before_.assign(bytes, bytes + ConstantsBytes(api));
}

void KeptConstants::Restore() {
  if (constants_ != nullptr) std::memcpy(constants_, before_.data(), before_.size());
}

void KeptConstants::Forget() {
  constants_ = nullptr;
  before_ = {};
}

}  // namespace diapason::plugin
