#include "launch/helper.h"

#include <string_view>

namespace diapason::launch {

std::optional<int> RunHelper(int argc, char** argv, std::initializer_list<Helper> helpers) {
  if (argc < 2) return std::nullopt;
  for (const Helper& helper : helpers) {
    if (std::string_view(argv[1]) == helper.name) {
      return helper.run(std::vector<std::string>(argv + 2, argv + argc));
    }
  }
  return std::nullopt;
}

}  // namespace diapason::launch
