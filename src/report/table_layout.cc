#include "report/table_layout.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"

namespace diapason::report {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kLeastText = 14;  // a text column is not made narrower than this

const char* CodeOf(Table::Tone tone) {
  switch (tone) {
    case Table::Tone::kPlain:
      break;
    case Table::Tone::kGood:
      return "\033[32m";
    case Table::Tone::kBad:
      return "\033[31m";
    case Table::Tone::kCaution:
      return "\033[33m";
    case Table::Tone::kFaint:
      return "\033[2m";
  }
  return "";
}

// A number, possibly with an interval; other text may end in brackets as well.
bool IsFigure(const std::string& text) {
  return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

// The byte behind the first `columns` characters.
size_t ByteAt(std::string_view text, size_t columns) {
  size_t at = 0;
  while (at < text.size() && columns > 0) {
    ++at;
    while (at < text.size() && (text[at] & 0xc0) == 0x80) ++at;
    --columns;
  }
  return at;
}

// The widest word of a title.
size_t LongestWord(const std::string& text) {
  size_t longest = 0;
  for (const std::string_view word : Split(text, ' ')) {
    longest = std::max(longest, TextWidth(word));
  }
  return longest;
}

}  // namespace

std::string Toned(const std::string& text, Table::Tone tone) {
  return tone == Table::Tone::kPlain ? text : CodeOf(tone) + text + "\033[0m";
}

size_t TextWidth(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::vector<std::string> WrapCell(const std::string& text, size_t columns) {
  std::vector<std::string> lines;
  std::string_view rest = text;
  columns = std::max<size_t>(columns, 1);
  while (TextWidth(rest) > columns) {
    const size_t most = ByteAt(rest, columns);
    // A blank right behind the line is a place to break as well.
    size_t end = rest.rfind(' ', most);
    size_t next = end == std::string_view::npos ? end : end + 1;
    if (end == std::string_view::npos || end == 0) {
      end = rest.find_last_of("/,;:=", most - 1);
      end = end == std::string_view::npos ? most : end + 1;
      next = end;
    }
    lines.emplace_back(rest.substr(0, end));
    rest.remove_prefix(next);
  }
  if (!rest.empty() || lines.empty()) lines.emplace_back(rest);
  return lines;
}

TableLayout::TableLayout(const Table& table, size_t columns) : table_(table), limit_(columns) {
  for (size_t i = 0; i < table.titles_.size(); ++i) {
    Column column;
    column.index = i;
    column.title = table.titles_[i];
    column.importance = i < table.importance_.size() ? table.importance_[i] : 0;
    column.right = i < table.aligns_.size() && table.aligns_[i] == Table::Align::kRight;
    Measure(&column);
    columns_.push_back(std::move(column));
  }
  if (limit_ == 0 || Total() <= limit_) return;
  WrapTitles();
  if (Total() > limit_) LeaveOutIntervals();
  if (Total() > limit_ && !NarrowText()) LeaveOutColumns();
  WidenTitles();
}

void TableLayout::Measure(Column* column) const {
  column->title_width = TextWidth(column->title);
  column->width = 0;
  for (const auto& row : table_.rows_) {
    column->width = std::max(column->width, TextWidth(CellText(*column, row[column->index].text)));
  }
}

std::string TableLayout::CellText(const Column& column, const std::string& text) const {
  return column.brief && IsFigure(text) ? WithoutInterval(text) : text;
}

bool TableLayout::HasIntervals(const Column& column) const {
  return std::any_of(table_.rows_.begin(), table_.rows_.end(), [&](const auto& row) {
    const std::string& text = row[column.index].text;
    return IsFigure(text) && WithoutInterval(text) != text;
  });
}

size_t TableLayout::Total() const {
  size_t total = columns_.empty() ? 0 : kGap * (columns_.size() - 1);
  for (const Column& column : columns_) total += std::max(column.title_width, column.width);
  return total;
}

void TableLayout::WrapTitles() {
  // The widest excess first, and no more than needed.
  while (Total() > limit_) {
    Column* widest = nullptr;
    for (Column& column : columns_) {
      const size_t least = std::max(LongestWord(column.title), column.width);
      if (column.title_width <= least) continue;
      if (widest == nullptr ||
          column.title_width - least >
              widest->title_width - std::max(LongestWord(widest->title), widest->width)) {
        widest = &column;
      }
    }
    if (widest == nullptr) return;
    --widest->title_width;
  }
}

void TableLayout::LeaveOutIntervals() {
  while (Total() > limit_) {
    Column* least = nullptr;
    for (Column& column : columns_) {
      if (column.brief || !HasIntervals(column)) continue;
      if (least == nullptr || column.importance <= least->importance) least = &column;
    }
    if (least == nullptr) return;
    least->brief = true;
    least->title = WithoutInterval(least->title);
    Measure(least);
    intervals_gone_ = true;
    WrapTitles();
  }
}

bool TableLayout::NarrowText() {
  const auto least = [](const Column& column) {
    const size_t whole = std::max(column.title_width, column.width);
    return column.right ? whole : std::min(whole, std::max(kLeastText, LongestWord(column.title)));
  };
  size_t narrowest = kGap * (columns_.size() - 1);
  for (const Column& column : columns_) narrowest += least(column);
  if (narrowest > limit_) return false;
  while (Total() > limit_) {
    Column* widest = nullptr;
    for (Column& column : columns_) {
      if (std::max(column.title_width, column.width) <= least(column)) continue;
      if (widest == nullptr || std::max(column.title_width, column.width) >
                                   std::max(widest->title_width, widest->width)) {
        widest = &column;
      }
    }
    const size_t whole = std::max(widest->title_width, widest->width) - 1;
    widest->title_width = std::min(widest->title_width, whole);
    widest->width = std::min(widest->width, whole);
  }
  return true;
}

void TableLayout::LeaveOutColumns() {
  while (columns_.size() > 1) {
    auto least = columns_.begin() + 1;
    for (auto at = least; at != columns_.end(); ++at) {
      if (at->importance <= least->importance) least = at;
    }
    gone_.push_back(least->title);
    columns_.erase(least);
    if (Total() <= limit_ || NarrowText()) return;
  }
  // What is left is one column: its text is wrapped, and a number stays whole.
  Column& last = columns_.front();
  if (last.right) return;
  last.title_width = std::min(last.title_width, limit_);
  last.width = std::min(last.width, limit_);
}

void TableLayout::WidenTitles() {
  for (Column& column : columns_) {
    const size_t now = std::max(column.title_width, column.width);
    const size_t whole = TextWidth(column.title);
    if (whole <= now || Total() + (whole - now) > limit_) continue;
    column.title_width = whole;
  }
}

std::string TableLayout::LeftOut() const {
  std::vector<std::string> parts;
  if (intervals_gone_) parts.emplace_back("intervals");
  std::vector<std::string> names;
  for (const std::string& title : gone_) {
    if (!title.empty()) names.push_back("'" + title + "'");
  }
  std::reverse(names.begin(), names.end());
  parts.insert(parts.end(), names.begin(), names.end());
  if (parts.empty()) return "";
  return Format("(no room for {} in {} columns)", Join(parts, ", "), limit_);
}

void TableLayout::AddLines(const std::vector<std::vector<std::string>>& cells,
                           const std::vector<Table::Tone>& tones, bool colours,
                           std::string* text) const {
  size_t lines = 1;
  for (const std::vector<std::string>& cell : cells) lines = std::max(lines, cell.size());
  for (size_t line = 0; line < lines; ++line) {
    std::string whole;
    size_t blanks = 0;  // padding that is written only if something follows
    for (size_t i = 0; i < cells.size(); ++i) {
      const Column& column = columns_[i];
      const std::string part = line < cells[i].size() ? cells[i][line] : "";
      const size_t width = std::max(column.title_width, column.width);
      const size_t padding = width - std::min(width, TextWidth(part));
      if (column.right) blanks += padding;
      if (!part.empty()) {
        const bool toned = colours && tones[i] != Table::Tone::kPlain;
        whole += std::string(blanks, ' ');
        whole += toned ? Toned(part, tones[i]) : part;
        blanks = 0;
      }
      if (!column.right) blanks += padding;
      blanks += kGap;
    }
    whole.erase(whole.find_last_not_of(' ') + 1);
    *text += whole + "\n";
  }
}

std::string TableLayout::Text(bool colours) const {
  std::string text;
  std::vector<std::vector<std::string>> cells;
  for (const Column& column : columns_) {
    cells.push_back(WrapCell(column.title, std::max(column.title_width, column.width)));
  }
  // Titles of one line stand directly above the cells.
  size_t lines = 1;
  for (const auto& title : cells) lines = std::max(lines, title.size());
  for (auto& title : cells) title.insert(title.begin(), lines - title.size(), "");
  AddLines(cells, std::vector<Table::Tone>(cells.size(), Table::Tone::kPlain), colours, &text);
  for (const auto& row : table_.rows_) {
    std::vector<Table::Tone> tones;
    cells.clear();
    for (const Column& column : columns_) {
      const std::string shown = CellText(column, row[column.index].text);
      cells.push_back(column.right || limit_ == 0
                          ? std::vector<std::string>{shown}
                          : WrapCell(shown, std::max(column.title_width, column.width)));
      tones.push_back(row[column.index].tone);
    }
    AddLines(cells, tones, colours, &text);
  }
  if (const std::string left_out = LeftOut(); !left_out.empty()) {
    for (const std::string& line : WrapCell(left_out, limit_)) {
      text += (colours ? "\033[2m" + line + "\033[0m" : line) + "\n";
    }
  }
  return text;
}

}  // namespace diapason::report
