#pragma once

#include <cstdint>

namespace diapason {

// "Leave it to the library", for an algorithm or a protocol.
inline constexpr int kKeep = -1;

// The configuration of a collective. The default Config means "leave it to the library" and is a
// valid choice. Numbers are the library's: for NCCL and RCCL those of the tuner interface, for Open
// MPI those of coll_tuned; docs/job/comm.md lists them by name.
struct Config {
  int algorithm = kKeep;
  int protocol = kKeep;  // Gloo: how its sockets wait
  int channels = 0;      // 0: the library decides. Gloo: number of parallel contexts
  // Open MPI's segment size in bytes; 0: the library decides. The other libraries have none.
  int64_t segment_bytes = 0;

  bool IsDefault() const {
    return algorithm == kKeep && protocol == kKeep && channels == 0 && segment_bytes == 0;
  }
  friend bool operator==(const Config&, const Config&) = default;
};

}  // namespace diapason
