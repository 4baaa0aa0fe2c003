#pragma once

#include <cstdint>

namespace diapason::plugin {

// The words of profiler events as the tuner's numbers. These names are not those of NCCL_ALGO, and
// no name is guessed: -1, or 0 bytes, for one that is not known. nullptr is such a name too.
int CollectiveFromEvent(const char* name) noexcept;
int AlgorithmFromEvent(const char* name) noexcept;
int ProtocolFromEvent(const char* name) noexcept;
int TypeBytesFromEvent(const char* name) noexcept;

// API v1 has numbers.
int CollectiveFromEvent(uint8_t number) noexcept;
int AlgorithmFromEvent(uint8_t number) noexcept;
int ProtocolFromEvent(uint8_t number) noexcept;
int TypeBytesFromEvent(uint8_t number) noexcept;

// Bytes as the tuner counts them: allgather and reducescatter have a count per rank, and are asked
// about with that of all ranks. 0: something is not known, or it does not fit.
uint64_t BytesAsAsked(int collective, uint64_t count, int type_bytes, int64_t ranks) noexcept;

}  // namespace diapason::plugin
