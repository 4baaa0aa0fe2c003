#pragma once

#include <string>
#include <vector>

#include "report/table.h"

namespace diapason::report {

// Lays a table out within a number of columns; the steps are those that table.h describes.
class TableLayout {
 public:
  // `columns` 0: no limit. The table must outlive this.
  TableLayout(const Table& table, size_t columns);
  std::string Text(bool colours) const;

 private:
  struct Column {
    size_t index;
    std::string title;
    size_t title_width;  // after wrapping
    size_t width;        // of the widest cell
    int importance;
    bool right;
    bool brief = false;
  };

  void Measure(Column* column) const;
  std::string CellText(const Column& column, const std::string& text) const;
  bool HasIntervals(const Column& column) const;
  size_t Total() const;
  void WrapTitles();
  void LeaveOutIntervals();
  // Whether text columns can be narrowed enough; narrows them if so.
  bool NarrowText();
  void LeaveOutColumns();
  // Titles that were wrapped get the room that is left.
  void WidenTitles();
  std::string LeftOut() const;
  void AddLines(const std::vector<std::vector<std::string>>& cells,
                const std::vector<Table::Tone>& tones, bool colours, std::string* text) const;

  const Table& table_;
  size_t limit_;
  std::vector<Column> columns_;
  std::vector<std::string> gone_;
  bool intervals_gone_ = false;
};

// A text in the colour of a tone.
std::string Toned(const std::string& text, Table::Tone tone);
// Width in characters: UTF-8 continuation bytes have none.
size_t TextWidth(std::string_view text);
// Lines of at most `columns` characters, broken at blanks, else behind one of "/,;:=", else
// anywhere. At least one line.
std::vector<std::string> WrapCell(const std::string& text, size_t columns);

}  // namespace diapason::report
