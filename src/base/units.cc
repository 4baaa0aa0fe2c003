#include "base/units.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <set>
#include <utility>

#include "base/text.h"

namespace diapason {
namespace {

struct Unit {
  std::string_view name;
  uint64_t bytes;
};

constexpr std::array<Unit, 14> kUnits{{{"", 1},
                                       {"b", 1},
                                       {"k", 1ull << 10},
                                       {"kib", 1ull << 10},
                                       {"kb", 1000ull},
                                       {"m", 1ull << 20},
                                       {"mib", 1ull << 20},
                                       {"mb", 1000000ull},
                                       {"g", 1ull << 30},
                                       {"gib", 1ull << 30},
                                       {"gb", 1000000000ull},
                                       {"t", 1ull << 40},
                                       {"tib", 1ull << 40},
                                       {"tb", 1000000000000ull}}};

constexpr const char kHowToWrite[] = "write a size such as 4096, 64KiB, 4M or 1GB";

}  // namespace

Result<uint64_t> ParseBytes(std::string_view text) {
  const std::string_view trimmed = Trim(text);
  const auto bad = [&](const char* why) {
    return Invalid(Format("'{}' {}; {}", trimmed, why, kHowToWrite));
  };
  const size_t number_end = trimmed.find_first_not_of("0123456789.");
  const std::string_view number = trimmed.substr(0, number_end);
  const std::string suffix =
      number_end == std::string_view::npos ? "" : ToLower(Trim(trimmed.substr(number_end)));
  uint64_t unit = 0;
  for (const Unit& known : kUnits) {
    if (known.name == suffix) unit = known.bytes;
  }
  if (number.empty() || unit == 0) return bad("is not a size");

  const size_t point = number.find('.');
  uint64_t whole = 0;
  if (!ParseUnsigned(number.substr(0, point), &whole)) return bad("is not a size");
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(whole, unit, &bytes)) return bad("does not fit into 64 bits");
  if (point == std::string_view::npos) return bytes;

  const std::string_view digits = number.substr(point + 1);
  uint64_t fraction = 0;
  if (digits.size() > 6 || !ParseUnsigned(digits, &fraction)) return bad("is not a size");
  uint64_t scale = 1;
  for (size_t i = 0; i < digits.size(); ++i) scale *= 10;
  // unit <= 2^40 and fraction < 10^6 < 2^20: the product fits.
  if ((unit * fraction) % scale != 0) return bad("is not a whole number of bytes");
  if (__builtin_add_overflow(bytes, unit * fraction / scale, &bytes)) {
    return bad("does not fit into 64 bits");
  }
  return bytes;
}

std::string FormatBytes(uint64_t bytes) {
  constexpr std::array<const char*, 5> kNames{"", "KiB", "MiB", "GiB", "TiB"};
  size_t level = 0;
  while (bytes != 0 && bytes % 1024 == 0 && level + 1 < kNames.size()) {
    bytes /= 1024;
    ++level;
  }
  return Format("{}{}", bytes, kNames[level]);
}

std::string AboutBytes(double bytes) {
  static const char* const kNames[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  while (std::fabs(bytes) >= 1024 && unit + 1 < std::size(kNames)) {
    bytes /= 1024;
    ++unit;
  }
  return (std::fabs(bytes) >= 100 ? Format("{:.0f} ", bytes) : Format("{:.3g} ", bytes)) +
         kNames[unit];
}

namespace {

constexpr size_t kMostSizes = 4096;

Result<std::vector<uint64_t>> ParseRange(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, ':');
  const auto bad = [&](const char* why) {
    return Invalid(
        Format("'{}' {}; write a range such as 1K:8M, 1K:8M:x4 or 1M:8M:+1M", text, why));
  };
  if (parts.size() > 3) return bad("has too many parts");
  ASSIGN_OR_RETURN(const uint64_t first, ParseBytes(parts[0]));
  ASSIGN_OR_RETURN(const uint64_t last, ParseBytes(parts[1]));
  if (first > last) return bad("is reversed");
  uint64_t factor = 2;
  uint64_t step = 0;
  if (parts.size() == 3) {
    const std::string_view how = Trim(parts[2]);
    if (how.starts_with('+')) {
      const Result<uint64_t> bytes = ParseBytes(how.substr(1));
      if (!bytes.ok() || bytes.value() == 0) return bad("has no usable step");
      step = bytes.value();
    } else if (!how.starts_with('x') || !ParseUnsigned(how.substr(1), &factor) || factor < 2) {
      return bad("has no usable step");
    }
  }
  std::vector<uint64_t> sizes;
  uint64_t size = first;
  while (size <= last) {
    sizes.push_back(size);
    if (sizes.size() > kMostSizes) return bad("holds more than 4096 sizes");
    const bool overflow = step > 0 ? __builtin_add_overflow(size, step, &size)
                                   : __builtin_mul_overflow(size, factor, &size);
    if (overflow || size == 0) break;
  }
  return sizes;
}

}  // namespace

Result<std::vector<uint64_t>> ParseSizes(std::string_view text) {
  std::vector<uint64_t> sizes;
  for (const std::string_view part : Split(text, ',')) {
    if (part.find(':') == std::string_view::npos) {
      ASSIGN_OR_RETURN(const uint64_t size, ParseBytes(part));
      sizes.push_back(size);
    } else {
      ASSIGN_OR_RETURN(const std::vector<uint64_t> range, ParseRange(part));
      sizes.insert(sizes.end(), range.begin(), range.end());
    }
    if (sizes.size() > kMostSizes) return Invalid("more than 4096 sizes");
  }
  // Drops duplicates and keeps the first.
  std::set<uint64_t> seen;
  std::erase_if(sizes, [&](uint64_t size) { return !seen.insert(size).second; });
  return sizes;
}

Result<double> ParseShare(std::string_view text, std::string_view what) {
  std::string number(Trim(text));
  const bool percent = number.ends_with('%');
  if (percent) number = std::string(Trim(number.substr(0, number.size() - 1)));
  char* rest = nullptr;
  const double value = std::strtod(number.c_str(), &rest);
  if (number.empty() || number.find_first_not_of("0123456789.") != std::string::npos ||
      *rest != '\0' || !(value < (percent ? 100 : 1))) {
    return Invalid("'" + std::string(text) + "' is no " + std::string(what) + ": write 5% or 0.05");
  }
  return percent ? value / 100 : value;
}

Result<double> ParseSeconds(std::string_view text) {
  constexpr std::pair<std::string_view, double> kTimes[] = {
      {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}};
  constexpr double kLongest = 1e9;
  const std::string_view trimmed = Trim(text);
  const size_t end = trimmed.find_first_not_of("0123456789.");
  const std::string number(trimmed.substr(0, end));
  const std::string unit =
      ToLower(Trim(end == std::string_view::npos ? std::string_view() : trimmed.substr(end)));
  char* rest = nullptr;
  const double value = std::strtod(number.c_str(), &rest);
  for (const auto& [name, factor] : kTimes) {
    if (name != unit || number.empty() || *rest != '\0') continue;
    if (value > 0 && value * factor <= kLongest) return value * factor;
  }
  return Invalid("'" + std::string(text) + "' is no time such as 250us, 5ms, 90s, 5m or 1h");
}

std::string DurationText(double seconds) {
  if (!(seconds >= 0)) return "?";
  if (seconds < 10) return Format("{:.1f}s", seconds);
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 60) return Format("{}s", whole);
  if (whole < 3600) return Format("{}m {:02}s", whole / 60, whole % 60);
  return Format("{}h {:02}m", whole / 3600, whole / 60 % 60);
}

}  // namespace diapason
