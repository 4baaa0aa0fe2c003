#include "base/printable.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"

namespace diapason {
namespace {

// The length in bytes of the UTF-8 character at the start of `text`, and the character; 0: invalid.
size_t CharacterAt(std::string_view text, uint32_t* character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) {
    *character = first;
    return 1;
  }
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  uint32_t value = first & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3fu);
  }
  const uint32_t least = size == 2 ? 0x80 : size == 3 ? 0x800 : 0x10000;
  if (value < least || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return 0;
  *character = value;
  return size;
}

bool IsControl(uint32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }
bool TurnsText(uint32_t c) {
  return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x2028 || c == 0x2029;
}

std::string Escaped(std::string_view text, bool lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    uint32_t c = 0;
    const size_t size = CharacterAt(text, &c);
    if (size == 0) {
      out += Format("\\x%02x", static_cast<unsigned char>(text[0]));
    } else if (IsControl(c) && !(lines && c == '\n')) {
      out += Format("\\x%02x", c);
    } else if (TurnsText(c)) {
      out += Format("\\u%04x", c);
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

}  // namespace

std::string Printable(std::string_view text) { return Escaped(text, false); }

std::string PrintableLines(std::string_view text) { return Escaped(text, true); }

std::string PrintableJson(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    uint32_t c = 0;
    const size_t size = std::max<size_t>(1, CharacterAt(json, &c));
    // Whitespace between values stays; strings contain no ASCII control characters.
    const bool escape = (c >= 0x7f && c < 0xa0) || TurnsText(c);
    out += escape ? Format("\\u%04x", c) : std::string(json.substr(0, size));
    json.remove_prefix(size);
  }
  return out;
}

}  // namespace diapason
