#pragma once

#include <string>
#include <string_view>

namespace diapason {

// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), for proofs that a process knows a secret. Our
// own, so that libdiapason-comm, which other programs link, brings no cryptographic library into
// them; sha256_test.cc holds the published vectors. The results are 32 raw bytes. Any thread may
// call; nothing fails but for want of memory.
inline constexpr size_t kSha256Bytes = 32;
std::string Sha256(std::string_view message);
std::string HmacSha256(std::string_view key, std::string_view message);

// Compares without telling by its time where the texts differ. Their lengths are no secret.
bool SameInConstantTime(std::string_view one, std::string_view other);

}  // namespace diapason
