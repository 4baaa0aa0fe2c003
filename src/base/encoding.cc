#include "base/encoding.h"

#include <array>

#include "base/text.h"

namespace diapason {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

uint64_t Fnv1a64(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : bytes) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ull;
  }
  return hash;
}

std::string EncodeBase64Url(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() * 4 + 2) / 3);
  uint32_t bits = 0;
  int held = 0;
  for (const char c : bytes) {
    bits = (bits << 8) | static_cast<unsigned char>(c);
    held += 8;
    while (held >= 6) {
      held -= 6;
      text += kAlphabet[(bits >> held) & 63];
    }
  }
  if (held > 0) text += kAlphabet[(bits << (6 - held)) & 63];
  return text;
}

Result<std::string> DecodeBase64Url(std::string_view text) {
  std::array<int8_t, 256> values;
  values.fill(-1);
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
  }
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  uint32_t bits = 0;
  int held = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const int8_t value = values[static_cast<unsigned char>(text[i])];
    if (value < 0) return Invalid(Format("character {} cannot stand in base64url text", i + 1));
    bits = (bits << 6) | static_cast<uint32_t>(value);
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes += static_cast<char>((bits >> held) & 255);
    }
  }
  // The remaining bits must be padding: fewer than six, all zero.
  if (held >= 6 || (bits & ((1u << held) - 1)) != 0) {
    return Invalid("the base64url text is cut short");
  }
  return bytes;
}

void AppendVarint(std::string* out, uint64_t value) {
  while (value >= 128) {
    *out += static_cast<char>((value & 127) | 128);
    value >>= 7;
  }
  *out += static_cast<char>(value);
}

bool TakeVarint(std::string_view* bytes, uint64_t* value) {
  uint64_t result = 0;
  for (size_t i = 0; i < bytes->size() && i < 10; ++i) {
    const uint64_t byte = static_cast<unsigned char>((*bytes)[i]);
    if (i == 9 && byte > 1) return false;
    result |= (byte & 127) << (7 * i);
    if ((byte & 128) == 0) {
      bytes->remove_prefix(i + 1);
      *value = result;
      return true;
    }
  }
  return false;
}

}  // namespace diapason
