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

// `text` with each character replaced by escape(character, valid), or as it is if that is "". An
// invalid byte is passed as the character.
template <typename Escape>
std::string Escaped(std::string_view text, const Escape& escape) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    uint32_t c = static_cast<unsigned char>(text[0]);
    const size_t size = CharacterAt(text, &c);
    const std::string_view whole = text.substr(0, std::max<size_t>(1, size));
    const std::string other = escape(c, size > 0);
    out += other.empty() ? whole : other;
    text.remove_prefix(whole.size());
  }
  return out;
}

std::string ForTerminal(std::string_view text, bool lines) {
  return Escaped(text, [lines](uint32_t c, bool valid) {
    if (!valid || (IsControl(c) && !(lines && c == '\n'))) return Format("\\x{:02x}", c);
    return TurnsText(c) ? Format("\\u{:04x}", c) : "";
  });
}

constexpr const char* kReplacement = "\xef\xbf\xbd";

}  // namespace

std::string Printable(std::string_view text) { return ForTerminal(text, false); }

std::string PrintableLines(std::string_view text) { return ForTerminal(text, true); }

std::string JsonString(std::string_view text) {
  const auto escape = [](uint32_t c, bool valid) -> std::string {
    if (!valid) return kReplacement;
    if (c == '"' || c == '\\') return {'\\', static_cast<char>(c)};
    const bool markup = c == '<' || c == '>' || c == '&' || c == '\'';
    return markup || IsControl(c) || TurnsText(c) ? Format("\\u{:04x}", c) : "";
  };
  return '"' + Escaped(text, escape) + '"';
}

std::string JsonBytes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    out += byte < ' ' || byte > 126 ? Format("\\u{:04x}", byte) : std::string(1, c);
  }
  return out + '"';
}

std::string HtmlText(std::string_view text) {
  return Escaped(text, [](uint32_t c, bool valid) -> std::string {
    if (!valid) return kReplacement;
    if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'') return Format("&#{};", c);
    if (IsControl(c) && c != '\n' && c != '\t') return Format("\\x{:02x}", c);
    return TurnsText(c) ? Format("\\u{:04x}", c) : "";
  });
}

std::string PrintableJson(std::string_view json) {
  return Escaped(json, [](uint32_t c, bool valid) {
    // Whitespace between values stays; strings contain no ASCII control characters.
    return valid && c >= 0x7f && (IsControl(c) || TurnsText(c)) ? Format("\\u{:04x}", c) : "";
  });
}

}  // namespace diapason
