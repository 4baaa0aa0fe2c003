#pragma once

#include <cstdint>

namespace diapason::plugin {

// What the library is given as contexts and event handles: a number that it takes for a pointer.
//
//   63..48  a tag of this process: values of other processes and real pointers are recognised
//   47..44  the kind
//   43..0   what the kind needs
//
// Never 0, so never NULL.
enum class HandleKind : uint8_t {
  kContext = 1,
  kGroup,
  kCall,          // an ordinary CollApi; see CallPayload
  kCapturedCall,  // a CollApi into a graph: the parent of every replay, for ever
  kRun,           // a Coll, in the event pool
  kChannel,       // one channel's KernelCh of a run
  kLaunch,        // a KernelLaunch, of the context in it
  kApiGroup,      // a GroupApi; its number, see Observer::StartGroupApi
};

inline constexpr int kHandlePayloadBits = 44;
inline constexpr uint64_t kHandlePayloadMask = (uint64_t{1} << kHandlePayloadBits) - 1;

// The tag is drawn when the first handle is made. No address has one like it: its highest bit is
// set, as in no address of a program, and it never begins with 0xff, as addresses of the kernel do;
// its lower byte is never 0, as that of a program's address is when its highest byte is in use.
uint64_t HandleTag() noexcept;

void* MakeHandle(HandleKind kind, uint64_t payload) noexcept;
// False for everything that this process has not made, and for other kinds. NULL is just false.
bool ReadHandle(void* handle, HandleKind kind, uint64_t* payload) noexcept;
// Whether it was made by this process, of whatever kind.
bool IsOwnHandle(void* handle) noexcept;

}  // namespace diapason::plugin
