#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/secrets.h"

namespace diapason::logs {

// A line of a log.
struct Spot {
  uint32_t file = 0;
  uint64_t line = 0;  // from 1; 0: nowhere
};

// The same with its text, cut to what fits on a screen.
struct SourceLine {
  uint32_t file = 0;
  uint64_t line = 0;
  std::string text;
};

inline constexpr size_t kShownText = 200;

inline SourceLine MakePlace(const Spot& spot, std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  // First the secrets, then the length: what is cut off may be what tells a password.
  SourceLine place{spot.file, spot.line, MaskSecretsIn(text)};
  if (place.text.size() > kShownText) place.text = place.text.substr(0, kShownText) + "...";
  return place;
}

}  // namespace diapason::logs
