#pragma once

#include <string>
#include <string_view>

namespace diapason {

// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), for proofs that a process knows a secret.
// Implemented here, so that libdiapason-comm brings no cryptographic library into the programs that
// link it; sha256_test.cc has the published vectors. The results are 32 raw bytes. Thread-safe;
// fails only if memory runs out.
inline constexpr size_t kSha256Bytes = 32;
std::string Sha256(std::string_view message);
std::string HmacSha256(std::string_view key, std::string_view message);

// A comparison whose duration does not depend on the contents. The lengths are not secret.
bool SameInConstantTime(std::string_view one, std::string_view other);

}  // namespace diapason
