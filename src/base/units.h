#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace diapason {

// Parses message sizes. K, M, G, T and KiB, MiB, GiB, TiB are powers of 1024 (as in nccl-tests),
// KB, MB, GB, TB powers of 1000; no suffix, or B, means bytes. Fractions are accepted if they give
// a whole number of bytes: "1.5M". Case-insensitive.
Result<uint64_t> ParseBytes(std::string_view text);

// The shortest exact form: 4194304 -> "4MiB", 4194305 -> "4194305". ParseBytes reads it back.
std::string FormatBytes(uint64_t bytes);

// Rounded, for the user: "512 B", "70.7 KiB", "1.97 TiB". May be negative.
std::string AboutBytes(double bytes);
inline std::string AboutBytes(uint64_t bytes) { return AboutBytes(static_cast<double>(bytes)); }

// Several sizes: a list "1K,8K,1M", or a range "1K:8M" (doubling), "1K:8M:x4" (times four),
// "1M:8M:+1M" (in steps), or a mix. At most 4096, without duplicates.
Result<std::vector<uint64_t>> ParseSizes(std::string_view text);

// A fraction: "5%" or "0.05"; at least 0, less than 1. `what` names it in the error.
Result<double> ParseShare(std::string_view text, std::string_view what);

// A duration: "250us", "5ms", "1.5s", "5m" or "5min", "1h". More than zero.
Result<double> ParseSeconds(std::string_view text);

// Rounded, for the user: "4.2s", "59s", "3m 05s", "2h 30m"; "?" below zero.
std::string DurationText(double seconds);

}  // namespace diapason
