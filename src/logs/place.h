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

// The same with its text, truncated for display.
struct SourceLine {
  uint32_t file = 0;
  uint64_t line = 0;
  std::string text;
};

inline constexpr size_t kShownText = 200;

inline SourceLine MakePlace(const Spot& spot, std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  // Masks secrets before truncating: the text that is cut off may identify a password.
  SourceLine place{spot.file, spot.line, MaskSecretsIn(text)};
  if (place.text.size() > kShownText) place.text = place.text.substr(0, kShownText) + "...";
  return place;
}

}  // namespace diapason::logs
