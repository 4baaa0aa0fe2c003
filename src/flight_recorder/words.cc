#include "flight_recorder/words.h"

#include <algorithm>

#include "base/text.h"

namespace diapason::flight_recorder {
namespace {

constexpr size_t kMostParts = 8;

}  // namespace

std::string AndList(const std::vector<std::string>& parts) {
  if (parts.size() < 2) return parts.empty() ? "" : parts[0];
  const std::vector<std::string> front(parts.begin(), parts.end() - 1);
  return Join(front, ", ") + " and " + parts.back();
}

std::string RankWords(std::vector<int64_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  if (ranks.empty()) return "no rank";
  std::vector<std::string> parts;
  size_t shown = 0;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    // Two in a row are written as two.
    if (end == i + 2) end = i + 1;
    if (parts.size() == kMostParts) {
      parts.push_back(Format("{} more", ranks.size() - shown));
      break;
    }
    parts.push_back(end == i + 1 ? std::to_string(ranks[i])
                                 : Format("{} to {}", ranks[i], ranks[end - 1]));
    shown += end - i;
    i = end;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + AndList(parts);
}

std::string RankWordsUpper(const std::vector<int64_t>& ranks) {
  std::string words = RankWords(ranks);
  words[0] = words[0] == 'r' ? 'R' : 'N';
  return words;
}

}  // namespace diapason::flight_recorder
