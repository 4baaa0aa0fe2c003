#include "report/row_table.h"

#include <algorithm>

#include "base/text.h"
#include "report/table_layout.h"

namespace diapason::report {

RowTable::RowTable(std::vector<Column> columns, size_t limit)
    : columns_(std::move(columns)), shown_(columns_.size(), true), limit_(limit) {
  while (limit_ > 0 && WidthOf(0, columns_.size()) > limit_) {
    size_t least = 0;
    for (size_t i = 1; i < columns_.size(); ++i) {
      if (!shown_[i]) continue;
      if (least == 0 || columns_[i].importance <= columns_[least].importance) least = i;
    }
    if (least == 0) return;  // the first column always stays
    shown_[least] = false;
  }
}

size_t RowTable::WidthOf(size_t first, size_t end) const {
  size_t width = 0;
  for (size_t i = first; i < end; ++i) {
    if (shown_[i]) width += (width == 0 ? 0 : columns_[i].gap) + columns_[i].width;
  }
  return width;
}

std::string RowTable::Line(const std::vector<std::string>& cells,
                           const std::vector<Table::Tone>& tones) const {
  const bool colours = CurrentTableStyle().colours;
  std::string line;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!shown_[i]) continue;
    const Column& column = columns_[i];
    const size_t width = TextWidth(cells[i]);
    const std::string padding(column.width - std::min(column.width, width), ' ');
    if (i > 0) line += std::string(column.gap, ' ');
    const std::string shown =
        colours && i < tones.size() && !cells[i].empty() ? Toned(cells[i], tones[i]) : cells[i];
    line += column.right ? padding + shown : shown + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string RowTable::Titles() const {
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  return Line(titles);
}

std::string RowTable::LeftOut() const {
  const auto gone = std::count(shown_.begin(), shown_.end(), false);
  if (gone == 0) return "";
  return Format("no room for {} of {} columns", gone, columns_.size());
}

}  // namespace diapason::report
