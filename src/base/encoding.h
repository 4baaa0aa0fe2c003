#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace diapason {

// FNV-1a, 64 bits: finds accidents (a file cut short, a rule changed), not attacks.
uint64_t Fnv1a64(std::string_view bytes);

// Base 64 with the URL alphabet and no padding: letters, digits, '-' and '_' survive every shell,
// launcher and scheduler option.
std::string EncodeBase64Url(std::string_view bytes);
Result<std::string> DecodeBase64Url(std::string_view text);

// Little-endian base-128 numbers: seven bits a byte, the high bit says that more follow.
void AppendVarint(std::string* out, uint64_t value);
// Takes one number off the front of *bytes. False when there is none, or it is over-long.
bool TakeVarint(std::string_view* bytes, uint64_t* value);

}  // namespace diapason
