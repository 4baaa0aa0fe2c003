#pragma once

#include <cstdint>
#include <string_view>

namespace diapason::logs {

enum class Level : uint8_t { kInfo, kWarn, kTrace, kCall };

// A line that NCCL or RCCL wrote, split into fields. The views point into the line.
struct LibraryLine {
  Level level = Level::kInfo;
  std::string_view host;     // "" if the start of the line was lost
  std::string_view process;  // "host:pid", as written
  int64_t pid = -1;
  int64_t device = -1;
  std::string_view message;
};

// The prefix that launchers write before the lines of a rank.
struct Label {
  std::string_view launcher;  // "mpirun", "srun", "torchrun"; "" for none
  int64_t rank = -1;          // -1: not said
  size_t length = 0;          // of the label, with the following blank
};
Label LabelOf(std::string_view line);

// Splits `line`. `at` is the position of "NCCL "; false if it is not part of a line of the library.
bool ParseLibraryLine(std::string_view line, size_t at, LibraryLine* parsed);

// "[2025-11-15 19:40:01]" or "2025-11-15 19:40:01" at the start of a line (after labels): the text
// without brackets, else "".
std::string_view TimeOf(std::string_view line);

}  // namespace diapason::logs
