#include "doctor/goals.h"

#include "base/text.h"

namespace diapason::doctor {
namespace {

// Cells of a table are at least two blanks apart.
std::vector<std::string> Cells(std::string_view line) {
  std::vector<std::string> cells;
  while (!line.empty()) {
    const size_t end = line.find("  ");
    const std::string_view cell = Trim(line.substr(0, end));
    if (!cell.empty()) cells.emplace_back(cell);
    if (end == std::string_view::npos) break;
    line.remove_prefix(end + 2);
  }
  return cells;
}

}  // namespace

std::vector<GoalResult> ParseGoals(const std::string& output, std::string* headline) {
  std::vector<GoalResult> goals;
  bool table = false;
  for (const std::string_view line : Split(output, '\n')) {
    if (line.starts_with("# ") && headline->empty()) *headline = std::string(line.substr(2));
    const std::vector<std::string> cells = Cells(line);
    if (cells.size() == 6 && cells[0] == "target" && cells[5] == "verdict") {
      table = true;
    } else if (table && cells.size() == 6) {
      goals.push_back({cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]});
    }
  }
  return goals;
}

}  // namespace diapason::doctor
