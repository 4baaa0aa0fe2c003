#pragma once

#include <string>
#include <vector>

#include "report/table.h"

namespace diapason::report {

// A table whose rows are printed as soon as they are known, so that the widths are set beforehand.
// Columns that do not fit the terminal are left out, the least important first.
class RowTable {
 public:
  struct Column {
    std::string title;
    size_t width = 0;
    bool right = true;
    int importance = 0;
    size_t gap = 2;  // blanks before it
  };
  // `limit`: columns of the terminal; 0: no limit.
  RowTable(std::vector<Column> columns, size_t limit);

  bool Shown(size_t column) const { return shown_[column]; }
  // One line with its line feed. A cell that is wider than its column moves the rest of the line.
  // REQUIRES: a cell for every column, also for those that are left out.
  // `tones` are used if the style of the process has colours; cells beyond them are plain.
  std::string Line(const std::vector<std::string>& cells,
                   const std::vector<Table::Tone>& tones = {}) const;
  // The titles as a line.
  std::string Titles() const;
  // Width of the columns from `first` to before `end` with the gaps between them; 0 if none is
  // shown.
  size_t WidthOf(size_t first, size_t end) const;
  // "no room for 2 of 16 columns"; "" if everything is shown.
  std::string LeftOut() const;

 private:
  std::vector<Column> columns_;
  std::vector<bool> shown_;
  size_t limit_;
};

}  // namespace diapason::report
