#include "flight_recorder/pickle_opcodes.h"

namespace diapason::flight_recorder {

std::string_view RefusedOpcode(uint8_t opcode) {
  switch (opcode) {
    case 'c':
      return "GLOBAL";
    case 'R':
      return "REDUCE";
    case 'b':
      return "BUILD";
    case 'i':
      return "INST";
    case 'o':
      return "OBJ";
    case 'P':
      return "PERSID";
    case 'Q':
      return "BINPERSID";
    case 0x81:
      return "NEWOBJ";
    case 0x82:
      return "EXT1";
    case 0x83:
      return "EXT2";
    case 0x84:
      return "EXT4";
    case 0x8f:
      return "EMPTY_SET";
    case 0x90:
      return "ADDITEMS";
    case 0x91:
      return "FROZENSET";
    case 0x92:
      return "NEWOBJ_EX";
    case 0x93:
      return "STACK_GLOBAL";
    case 0x97:
      return "NEXT_BUFFER";
    case 0x98:
      return "READONLY_BUFFER";
    default:
      return "";
  }
}

int64_t LongNumber(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const bool negative = (static_cast<uint8_t>(bytes.back()) & 0x80) != 0;
  uint64_t number = negative ? ~uint64_t{0} : 0;
  const auto filler = static_cast<uint8_t>(negative ? 0xff : 0);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i]);
    if (i < 8) {
      number &= ~(uint64_t{0xff} << (8 * i));
      number |= static_cast<uint64_t>(byte) << (8 * i);
    } else if (byte != filler) {
      return negative ? INT64_MIN : INT64_MAX;
    }
  }
  const auto value = static_cast<int64_t>(number);
  if (bytes.size() > 8 && (value < 0) != negative) return negative ? INT64_MIN : INT64_MAX;
  return value;
}

}  // namespace diapason::flight_recorder
