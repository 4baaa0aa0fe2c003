#include "base/text.h"

#define FMT_HEADER_ONLY  // its code becomes part of this object
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace diapason {

std::string FormatArguments(fmt::string_view format, fmt::format_args arguments) {
  return fmt::vformat(format, arguments);
}

std::string_view Trim(std::string_view text) {
  const char* blanks = " \t\r\n";
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  while (true) {
    const size_t end = text.find(separator, start);
    if (end == std::string_view::npos) break;
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

std::string ToLower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string FoldName(std::string_view name) {
  std::string folded = ToLower(name);
  std::erase_if(folded, [](char c) { return c == '_' || c == '-' || c == ' '; });
  return folded;
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, substitute});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

std::string ClosestName(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string folded = FoldName(name);
  // A name that long is not a typo, and the search is quadratic.
  if (folded.empty() || folded.size() > 64) return "";
  std::string best;
  size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const std::string other = FoldName(candidate);
    size_t distance = EditDistance(folded, other);
    // "badring" is far from "ring" by edit distance, but contains it.
    if (other.size() >= 3 && folded.find(other) != std::string::npos) {
      distance = std::min<size_t>(distance, 1);
    }
    if (best.empty() || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  const size_t tolerated = std::max<size_t>(1, folded.size() / 3);
  return best_distance <= tolerated ? best : "";
}

std::string Suggestion(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string best = ClosestName(name, candidates);
  if (!best.empty()) return "; did you mean '" + best + "'?";
  return "; known are " + Join(candidates, ", ");
}

bool ParseUnsigned(std::string_view text, uint64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool ParseSigned(std::string_view text, int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string joined;
  for (const std::string& part : parts) {
    if (!joined.empty()) joined += separator;
    joined += part;
  }
  return joined;
}

std::string ShellQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string ShellWord(const std::string& text) {
  bool safe = !text.empty();
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && std::string_view("_-./:,+@%").find(c) == std::string_view::npos) safe = false;
  }
  return safe ? text : ShellQuoted(text);
}

std::string Count(size_t number, std::string_view noun) {
  const char* plural = noun.ends_with('s') ? "es" : "s";
  return Format("{} {}{}", number, noun, number == 1 ? "" : plural);
}

}  // namespace diapason
