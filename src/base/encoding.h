#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace diapason {

// FNV-1a, 64 bits: detects accidental changes (a truncated file, a changed rule), not attacks.
uint64_t Fnv1a64(std::string_view bytes);

// Base 64 with the URL alphabet and no padding: letters, digits, '-' and '_' need no quoting in
// shells, launchers and schedulers.
std::string EncodeBase64Url(std::string_view bytes);
Result<std::string> DecodeBase64Url(std::string_view text);

// Little-endian base-128 numbers: seven bits a byte, the high bit says that more follow.
void AppendVarint(std::string* out, uint64_t value);
// Removes one number from the front of *bytes. False if there is none, or it is too long.
bool TakeVarint(std::string_view* bytes, uint64_t* value);

}  // namespace diapason
