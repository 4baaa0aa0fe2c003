#include "report/table.h"

#include <algorithm>

#include "base/printable.h"

namespace diapason::report {
namespace {

size_t Width(const std::string& text) {
  // UTF-8 continuation bytes have no width.
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

void Table::Add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = Printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::Text() const {
  std::vector<size_t> widths;
  for (const std::string& title : titles_) widths.push_back(Width(title));
  for (const std::vector<std::string>& row : rows_) {
    for (size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], Width(row[i]));
    }
  }
  std::string text;
  const auto add = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size() && i < widths.size(); ++i) {
      const std::string padding(widths[i] - Width(cells[i]), ' ');
      const bool right = i < aligns_.size() && aligns_[i] == Align::kRight;
      line += right ? padding + cells[i] : cells[i] + padding;
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add(titles_);
  for (const std::vector<std::string>& row : rows_) add(row);
  return text;
}

}  // namespace diapason::report
