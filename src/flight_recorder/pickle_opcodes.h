#pragma once

#include <cstdint>
#include <string_view>

namespace diapason::flight_recorder {

// The name of an opcode of the pickle format that is refused, "GLOBAL"; "" for those of plain data
// and for bytes that are no opcode.
std::string_view RefusedOpcode(uint8_t opcode);

// A little-endian integer in two's complement; beyond 64 bits, the nearest that fits.
int64_t LongNumber(std::string_view bytes);

}  // namespace diapason::flight_recorder
