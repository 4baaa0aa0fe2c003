#pragma once

#include <cstdint>

namespace diapason::plugin {

// The values that the library gets as contexts and event handles: numbers in pointers.
//
//   63..48  a tag of this process: handles of other processes and real pointers are recognised
//   47..44  the kind
//   43..0   the payload of the kind
//
// Never 0, so never NULL.
enum class HandleKind : uint8_t {
  kContext = 1,
  kGroup,
  kCall,          // an ordinary CollApi; see CallPayload
  kCapturedCall,  // a CollApi into a graph: the parent of all its replays
  kRun,           // a Coll, in the event pool
  kChannel,       // one channel's KernelCh of a run
  kLaunch,        // a KernelLaunch, of the context in it
  kApiGroup,      // a GroupApi; its number, see ProfilerObserver::StartGroupApi
  kLink,          // any event that a second profiler has a handle for, see event_links.h
};

inline constexpr int kHandlePayloadBits = 44;
inline constexpr uint64_t kHandlePayloadMask = (uint64_t{1} << kHandlePayloadBits) - 1;

// The tag is drawn at random with the first handle. No address has such a tag: its highest bit is
// set, unlike in user-space addresses; its first byte is not 0xff, unlike in kernel addresses; and
// its second byte is not 0, unlike in user-space addresses with a tag in the first byte.
uint64_t HandleTag() noexcept;

void* MakeHandle(HandleKind kind, uint64_t payload) noexcept;
// False for values that this process did not make, for other kinds, and for NULL.
bool ReadHandle(void* handle, HandleKind kind, uint64_t* payload) noexcept;
// Whether this process made it, of any kind.
bool IsOwnHandle(void* handle) noexcept;

}  // namespace diapason::plugin
