#include "plugin/profiler/event_versions.h"

#include <bit>
#include <cstring>
#include <string_view>

#include "domain/vocabulary.h"
#include "plugin/profiler/event_names.h"

namespace diapason::plugin {
namespace {

constexpr int kFirstWithNames = 2;
constexpr int kFirstWithoutCommHash = 4;
constexpr int kFirstWithCalls = 5;

constexpr uint64_t kBelowColl =
    abi::kEventProxyOp | abi::kEventProxyStep | abi::kEventKernelCh | abi::kEventNetPlugin;
constexpr uint64_t kCe = abi::kEventCeColl | abi::kEventCeSync | abi::kEventCeBatch;

size_t SizeOf(int api) noexcept {
  constexpr size_t kSizes[] = {0,
                               sizeof(abi::EventV1),
                               sizeof(abi::EventV2),
                               sizeof(abi::EventV3),
                               sizeof(abi::EventV4),
                               sizeof(abi::EventV5),
                               sizeof(abi::EventV6),
                               sizeof(abi::EventV7)};
  return kSizes[api];
}

// The fields of a Coll that a version below 4 has, read from a newer one.
struct CollFields {
  const char* name = nullptr;
  uint64_t comm_hash = 0;
  uint64_t sequence = 0;
  const char* func = nullptr;
  const void* send_buffer = nullptr;
  void* receive_buffer = nullptr;
  size_t count = 0;
  int root = 0;
  const char* datatype = nullptr;
  uint8_t channels = 0;
  uint8_t warps = 0;
  const char* algorithm = nullptr;
  const char* protocol = nullptr;
};

template <class Coll>
CollFields CommonFields(const Coll& coll) noexcept {
  CollFields fields;
  fields.sequence = coll.sequence;
  fields.func = coll.func;
  fields.send_buffer = coll.send_buffer;
  fields.receive_buffer = coll.receive_buffer;
  fields.count = coll.count;
  fields.root = coll.root;
  fields.datatype = coll.datatype;
  fields.warps = coll.warps;
  fields.algorithm = coll.algorithm;
  fields.protocol = coll.protocol;
  return fields;
}

template <class Coll>
CollFields OldFields(const Coll& coll) noexcept {
  CollFields fields = CommonFields(coll);
  fields.name = coll.name;
  fields.comm_hash = coll.comm_hash;
  fields.channels = coll.most_channels;
  return fields;
}

CollFields ReadColl(int api, const AnyEvent& event) noexcept {
  if (api == 2) return OldFields(event.v2.coll);
  if (api == 3) return OldFields(event.v3.coll);
  CollFields fields = CommonFields(event.v4.coll);  // later versions begin alike
  fields.channels = event.v4.coll.channels;
  return fields;
}

template <class Coll>
void WriteCommon(const CollFields& fields, Coll* coll) noexcept {
  coll->name = fields.name;
  coll->comm_hash = fields.comm_hash;
  coll->sequence = fields.sequence;
  coll->send_buffer = fields.send_buffer;
  coll->receive_buffer = fields.receive_buffer;
  coll->count = fields.count;
  coll->root = fields.root;
  coll->most_channels = fields.channels;
  coll->warps = fields.warps;
}

template <class Coll>
void WriteNames(const CollFields& fields, Coll* coll) noexcept {
  coll->func = fields.func;
  coll->datatype = fields.datatype;
  coll->algorithm = fields.algorithm;
  coll->protocol = fields.protocol;
}

// The library's numbers; what its own adapter takes for a name that it does not know.
uint8_t FunctionNumber(const char* name) noexcept {
  constexpr uint8_t kSendRecv = 5;
  constexpr uint8_t kSend = 6;
  constexpr uint8_t kRecv = 7;
  const std::string_view text = name != nullptr ? name : "";
  if (text == "Recv") return kRecv;
  if (text == "SendRecv") return kSendRecv;
  const int number = CollectiveFromEvent(name);
  return number >= 0 ? static_cast<uint8_t>(number) : kSend;
}
uint8_t AlgorithmNumber(const char* name) noexcept {
  const int number = AlgorithmFromEvent(name);
  return static_cast<uint8_t>(number >= 0 ? number : kPat);
}
uint8_t ProtocolNumber(const char* name) noexcept {
  const int number = ProtocolFromEvent(name);
  return static_cast<uint8_t>(number >= 0 ? number : kSimple);
}
uint8_t TypeNumber(const char* name) noexcept {
  constexpr uint8_t kFloat64 = 8;
  constexpr std::string_view kNames[] = {"ncclInt8",     "ncclUint8",      "ncclInt32",
                                         "ncclUint32",   "ncclInt64",      "ncclUint64",
                                         "ncclFloat16",  "ncclFloat32",    "ncclFloat64",
                                         "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
  const std::string_view text = name != nullptr ? name : "";
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == text) return static_cast<uint8_t>(i);
  }
  return kFloat64;
}

void WriteColl(const CollFields& fields, int api, AnyEvent* event) noexcept {
  switch (api) {
    case 1:
      event->v1.coll = {};
      WriteCommon(fields, &event->v1.coll);
      event->v1.coll.func = FunctionNumber(fields.func);
      event->v1.coll.datatype = TypeNumber(fields.datatype);
      event->v1.coll.algorithm = AlgorithmNumber(fields.algorithm);
      event->v1.coll.protocol = ProtocolNumber(fields.protocol);
      return;
    case 2:
      event->v2.coll = {};
      WriteCommon(fields, &event->v2.coll);
      WriteNames(fields, &event->v2.coll);
      return;
    default:
      event->v3.coll = {};
      WriteCommon(fields, &event->v3.coll);
      WriteNames(fields, &event->v3.coll);
  }
}

// v2 and v3 have the same.
void WriteP2p(int from, int to, const AnyEvent& source, AnyEvent* event) noexcept {
  abi::P2pV2 p2p{};
  if (from < kFirstWithoutCommHash) {
    p2p = source.v2.p2p;
  } else {
    const abi::P2pV4& newer = source.v4.p2p;  // later versions begin alike
    p2p = {nullptr, 0, newer.func, newer.buffer, newer.datatype, newer.count, newer.peer};
  }
  if (to >= kFirstWithNames) {
    event->v2.p2p = p2p;
    return;
  }
  event->v1.p2p = {
      p2p.name,  p2p.comm_hash, FunctionNumber(p2p.func), p2p.buffer, TypeNumber(p2p.datatype),
      p2p.count, p2p.peer};
}

}  // namespace

uint64_t TypesOfApi(int api) noexcept {
  if (api >= 7) return (uint64_t{1} << 16) - 1;
  if (api == 6) return (uint64_t{1} << 15) - 1;
  if (api == 5) return (uint64_t{1} << 12) - 1;
  return api >= 3 ? (uint64_t{1} << 8) - 1 : (uint64_t{1} << 6) - 1;
}

uint64_t TypeOfEvent(int api, const void* event) noexcept {
  return api >= kFirstWithCalls ? static_cast<const abi::EventV5*>(event)->type
                                : static_cast<const abi::EventV1*>(event)->type;
}

bool IsToldOf(uint64_t type, int mask) noexcept {
  uint64_t wants = type;
  switch (type) {
    case abi::kEventGroupApi:
      wants |= abi::kEventCollApi | abi::kEventP2pApi | abi::kEventKernelLaunch | abi::kEventGroup |
               abi::kEventColl | abi::kEventP2p | kBelowColl | kCe;
      break;
    case abi::kEventCollApi:
      wants |= abi::kEventColl | kBelowColl | kCe;
      break;
    case abi::kEventP2pApi:
      wants |= abi::kEventP2p | kBelowColl;
      break;
    case abi::kEventGroup:
      wants |= abi::kEventColl | abi::kEventP2p | kBelowColl;
      break;
    case abi::kEventColl:
    case abi::kEventP2p:
      wants |= kBelowColl;
      break;
    case abi::kEventProxyOp:
      wants |= abi::kEventProxyStep | abi::kEventNetPlugin;
      break;
    case abi::kEventProxyStep:
      wants |= abi::kEventNetPlugin;
      break;
    case abi::kEventCeColl:
      wants |= kCe;
      break;
    default:
      break;
  }
  return (static_cast<uint64_t>(static_cast<unsigned>(mask)) & wants) != 0;
}

int EffectiveMask(int api, int mask) noexcept {
  mask &= static_cast<int>(TypesOfApi(api));
  if ((mask & static_cast<int>(abi::kEventKernelPhase)) != 0) mask |= abi::kEventKernelCh;
  return mask;
}

void* ParentGroupOf(int api, const void* event) noexcept {
  if (api < kFirstWithCalls) return nullptr;
  const auto* newer = static_cast<const abi::EventV5*>(event);
  if (newer->type == abi::kEventColl) return newer->coll.parent_group;
  return newer->type == abi::kEventP2p ? newer->p2p.parent_group : nullptr;
}

bool ConvertEvent(int from, int to, const void* event, const Parents& parents,
                  AnyEvent* converted) noexcept {
  const uint64_t type = TypeOfEvent(from, event);
  if (!std::has_single_bit(type) || (type & TypesOfApi(to)) == 0) return false;
  std::memset(converted, 0, sizeof(*converted));
  std::memcpy(converted, event, SizeOf(from));
  const bool task = type == abi::kEventColl || type == abi::kEventP2p;
  // The hierarchy changed in v5: before, the parent of a task was its group.
  converted->v5.parent =
      task && from >= kFirstWithCalls && to < kFirstWithCalls ? parents.group : parents.parent;
  if (type == abi::kEventColl && to >= kFirstWithCalls)
    converted->v5.coll.parent_group = parents.group;
  if (type == abi::kEventP2p && to >= kFirstWithCalls)
    converted->v5.p2p.parent_group = parents.group;
  if (!task || to >= from || to >= kFirstWithoutCommHash) return true;
  AnyEvent source;
  std::memcpy(&source, converted, sizeof(source));
  if (type == abi::kEventColl) {
    WriteColl(ReadColl(from, source), to, converted);
  } else {
    WriteP2p(from, to, source, converted);
  }
  return true;
}

bool ConvertState(int from, int to, int state, const void* arguments, AnyState* converted,
                  void** passed) noexcept {
  std::memset(converted, 0, sizeof(*converted));
  const bool small = from >= kFirstWithoutCommHash;
  if (arguments != nullptr) {
    std::memcpy(converted, arguments, small ? sizeof(abi::StateV4) : sizeof(abi::StateV1));
  }
  *passed = converted;
  if (from == to) {
    if (arguments == nullptr) *passed = nullptr;
    return true;
  }
  if (!small) return true;  // v1 to v3 are alike
  const bool control = state >= 13 && state <= 18;
  if (to < kFirstWithoutCommHash) {
    // Old versions have proxy steps without arguments, and proxy controls.
    if (!control) std::memset(converted, 0, sizeof(*converted));
    return state >= 8 && state <= 18;
  }
  if (to == 4) return state >= 8 && state <= 22;
  if (to == 5) return state >= 8 && state <= 24;
  return state != abi::kStateKernelPhaseStop;
}

}  // namespace diapason::plugin
