#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "policy/policy.h"

namespace diapason::policy {

// A whole policy as one word of letters, digits, '-', '_' and '.', which needs no quoting in
// shells, mpirun -x, srun --export and container options. It contains library, header, rows and the
// line numbers of the original file, and ends in a checksum. About 19 characters per row.
//
//   d1.<base64url of the packed policy>.<16 hexadecimal digits>
std::string EncodeInline(const Policy& policy);

// Rejects a word that is truncated, changed, of another version, or that EncodeInline cannot have
// written.
Result<Policy> DecodeInline(std::string_view text);

// Linux limits a variable to 128 KiB, including its name.
inline constexpr size_t kLongestInline = 128 * 1024 - 64;

}  // namespace diapason::policy
