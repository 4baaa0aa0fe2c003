#pragma once

#include <cstdint>
#include <string_view>

namespace diapason::logs {

enum class Level : uint8_t { kInfo, kWarn, kTrace, kCall };

// A line that NCCL or RCCL wrote, taken apart. The views are into the line.
struct LibraryLine {
  Level level = Level::kInfo;
  std::string_view host;     // "" where the start of the line was lost
  std::string_view process;  // "host:pid", as it stands
  int64_t pid = -1;
  int64_t device = -1;
  std::string_view message;
};

// What launchers write before the lines of a rank.
struct Label {
  std::string_view launcher;  // "mpirun", "srun", "torchrun"; "" for none
  int64_t rank = -1;          // -1: not said
  size_t length = 0;          // of the label, with the blank behind it
};
Label LabelOf(std::string_view line);

// Takes `line` apart. `at` is where "NCCL " stands in it; false where that is not the middle of one
// of the library's lines.
bool ParseLibraryLine(std::string_view line, size_t at, LibraryLine* parsed);

// "[2025-11-15 19:40:01]" or "2025-11-15 19:40:01" at the start of a line (after labels): the text
// without brackets, else "".
std::string_view TimeOf(std::string_view line);

}  // namespace diapason::logs
