#include "plugin/profiler/event_names.h"

#include <array>
#include <string_view>

#include "domain/collectives.h"

namespace diapason::plugin {
namespace {

struct Name {
  std::string_view name;
  int number;
};

template <size_t kSize>
int Find(const std::array<Name, kSize>& names, const char* text, int otherwise) noexcept {
  if (text == nullptr) return otherwise;
  const std::string_view name = text;
  for (const Name& one : names) {
    if (one.name == name) return one.number;
  }
  return otherwise;
}

constexpr auto kCollectives = [] {
  std::array<Name, kAskedCollectiveCount> names{};
  for (const OperationFacts& facts : kOperations) {
    if (*facts.nccl == '\0') continue;
    const int number = static_cast<int>(*facts.collective);
    names.at(static_cast<size_t>(number)) = {facts.nccl, number};
  }
  return names;
}();

constexpr std::array<Name, 7> kAlgorithms{{
    {"RING", kRing},
    {"TREE", kTree},
    {"COLLNET_DIRECT", kCollNetDirect},
    {"COLLNET_CHAIN", kCollNetChain},
    {"NVLS", kNvls},
    {"NVLS_TREE", kNvlsTree},
    {"PAT", kPat},
}};

constexpr std::array<Name, 3> kProtocols{{{"SIMPLE", kSimple}, {"LL", kLl}, {"LL128", kLl128}}};

constexpr std::array<Name, 12> kTypes{{
    {"ncclFloat32", 4},
    {"ncclFloat16", 2},
    {"ncclBfloat16", 2},
    {"ncclInt8", 1},
    {"ncclUint8", 1},
    {"ncclInt32", 4},
    {"ncclUint32", 4},
    {"ncclInt64", 8},
    {"ncclUint64", 8},
    {"ncclFloat64", 8},
    {"ncclFloat8e4m3", 1},
    {"ncclFloat8e5m2", 1},
}};

// By the library's type number: int8, uint8, int32, uint32, int64, uint64, float16, float32,
// float64, bfloat16, float8e4m3, float8e5m2.
constexpr std::array<int, 12> kTypeBytes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

}  // namespace

int CollectiveFromEvent(const char* name) noexcept { return Find(kCollectives, name, -1); }
int AlgorithmFromEvent(const char* name) noexcept { return Find(kAlgorithms, name, -1); }
int ProtocolFromEvent(const char* name) noexcept { return Find(kProtocols, name, -1); }
int TypeBytesFromEvent(const char* name) noexcept { return Find(kTypes, name, 0); }

int CollectiveFromEvent(uint8_t number) noexcept {
  return number < kAskedCollectiveCount ? number : -1;
}
int AlgorithmFromEvent(uint8_t number) noexcept { return number <= kPat ? number : -1; }
int ProtocolFromEvent(uint8_t number) noexcept { return number <= kSimple ? number : -1; }
int TypeBytesFromEvent(uint8_t number) noexcept {
  return number < kTypeBytes.size() ? kTypeBytes[number] : 0;
}

uint64_t BytesAsAsked(int collective, uint64_t count, int type_bytes, int64_t ranks) noexcept {
  if (collective < 0 || collective >= kAskedCollectiveCount || type_bytes <= 0) return 0;
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, static_cast<uint64_t>(type_bytes), &bytes)) return 0;
  if (!CountsAllRanks(OperationOf(static_cast<Collective>(collective)))) return bytes;
  if (ranks <= 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(ranks), &bytes)) return 0;
  return bytes;
}

}  // namespace diapason::plugin
