#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "policy/policy.h"

namespace diapason::policy {

// A whole policy as one word of letters, digits, '-', '_' and '.': it passes through shells,
// mpirun -x, srun --export and container options unquoted. It carries library, header, rows and the
// line numbers of the file it came from, and ends in a checksum. About 19 characters a row.
//
//   d1.<base64url of the packed policy>.<16 hexadecimal digits>
std::string EncodeInline(const Policy& policy);

// Refuses a word that is cut short, changed, of another version, or not one EncodeInline could have
// written.
Result<Policy> DecodeInline(std::string_view text);

// Linux gives one variable 128 KiB, name and all; the word must stay below.
inline constexpr size_t kLongestInline = 128 * 1024 - 64;

}  // namespace diapason::policy
