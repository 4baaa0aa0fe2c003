#pragma once

#include <cstdint>

#include "plugin/abi/profiler_abi.h"

// The differences between the versions of the profiler interface, for a second profiler that speaks
// an older one than the library: what the library's own adapters do for a profiler that is loaded
// alone.
namespace diapason::plugin {

// An event as any version has it. The member that was written says which.
union AnyEvent {
  abi::EventV1 v1;
  abi::EventV2 v2;
  abi::EventV3 v3;
  abi::EventV4 v4;
  abi::EventV5 v5;
  abi::EventV7 v7;
};
union AnyState {
  abi::StateV1 v1;
  abi::StateV4 v4;
};

// The event types that a version has, as a mask.
uint64_t TypesOfApi(int api) noexcept;
uint64_t TypeOfEvent(int api, const void* event) noexcept;

// Whether a library would tell a profiler with this mask about an event of this type: types of the
// mask, and the ancestors of these.
bool IsToldOf(uint64_t type, int mask) noexcept;
// What such a profiler's mask means to the library: without bits that its version does not have,
// and with those that others imply.
int EffectiveMask(int api, int mask) noexcept;

// The parents as the second profiler knows them.
struct Parents {
  void* parent = nullptr;
  void* group = nullptr;  // of a Coll and a P2p, v5 and later
};
// The parent group that a Coll or P2p of the library names; NULL for other types and versions.
void* ParentGroupOf(int api, const void* event) noexcept;

// Writes the event of version `from` as one of version `to`, which is not newer. False: the older
// version has no such event.
bool ConvertEvent(int from, int to, const void* event, const Parents& parents,
                  AnyEvent* converted) noexcept;

// Likewise the arguments of a state change. *passed is what to pass: `converted`, or NULL where the
// library passed NULL and the version stays the same. False: the older version has no such state.
bool ConvertState(int from, int to, int state, const void* arguments, AnyState* converted,
                  void** passed) noexcept;

}  // namespace diapason::plugin
