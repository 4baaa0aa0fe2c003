#include "domain/library_version.h"

#include <cstdint>
#include <vector>

#include "base/text.h"

namespace diapason {

Result<int> ParseLibraryVersion(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, '.');
  uint64_t numbers[3] = {};
  bool fine = parts.size() >= 2 && parts.size() <= 3;
  for (size_t i = 0; fine && i < parts.size(); ++i) {
    fine = ParseUnsigned(parts[i], &numbers[i]) && numbers[i] < 100;
  }
  if (!fine) return Invalid("'" + std::string(text) + "' is no version such as 2.28.9");
  return static_cast<int>(numbers[0] * 10000 + numbers[1] * 100 + numbers[2]);
}

std::string LibraryVersionText(int version) {
  if (version <= 0) return "";
  return Format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace diapason
