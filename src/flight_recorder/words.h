#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace diapason::flight_recorder {

// "rank 3", "ranks 9 and 14", "ranks 0 to 3, 8 and 5 more".
std::string RankWords(std::vector<int64_t> ranks);
std::string RankWordsUpper(const std::vector<int64_t>& ranks);  // "Ranks 9 and 14"
// "a", "a and b", "a, b and c".
std::string AndList(const std::vector<std::string>& parts);

}  // namespace diapason::flight_recorder
