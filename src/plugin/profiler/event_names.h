#pragma once

#include <cstdint>

namespace diapason::plugin {

// Maps names in profiler events to the tuner's numbers. These names are not those of NCCL_ALGO.
// Unknown names and nullptr give -1, or 0 bytes; nothing is guessed.
int CollectiveFromEvent(const char* name) noexcept;
int AlgorithmFromEvent(const char* name) noexcept;
int ProtocolFromEvent(const char* name) noexcept;
int TypeBytesFromEvent(const char* name) noexcept;

// API v1 passes numbers.
int CollectiveFromEvent(uint8_t number) noexcept;
int AlgorithmFromEvent(uint8_t number) noexcept;
int ProtocolFromEvent(uint8_t number) noexcept;
int TypeBytesFromEvent(uint8_t number) noexcept;

// Bytes as the tuner counts them: allgather and reducescatter events have a count per rank, the
// tuner gets the total of all ranks. 0: an argument is unknown, or the result overflows.
uint64_t BytesAsAsked(int collective, uint64_t count, int type_bytes, int64_t ranks) noexcept;

}  // namespace diapason::plugin
