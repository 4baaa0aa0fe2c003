#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace diapason::report {

enum class TableFormat { kText, kMarkdown, kCsv };

// How tables are written.
struct TableStyle {
  TableFormat format = TableFormat::kText;
  size_t columns = 0;  // width of the terminal; 0: no limit, nothing is left out or wrapped
  bool colours = false;
};

// The style of every Table::Text() of this process. Not synchronised: the tool sets it once, before
// the first table. Without a call it is a TableStyle{}.
void SetTableStyle(const TableStyle& style);
const TableStyle& CurrentTableStyle();

// In Markdown and CSV, Table::Text() is enclosed in these, so that TablesOf finds the tables in a
// text of sentences and tables. No cell contains one.
inline constexpr char kTableBegin = '\x02';
inline constexpr char kTableEnd = '\x03';
// The tables in a text, without the text around them.
std::vector<std::string> TablesOf(std::string_view text);

// A table: columns padded to their widest cell, two blanks between them, no lines. Text is measured
// in characters, not bytes.
//
// A table that is wider than the style's columns is made narrower, one step after the other, until
// it fits: titles are wrapped; an interval behind a value is left out ("12.1 [11.9, 12.4]" becomes
// "12.1") in columns that have intervals; left-aligned cells are wrapped; columns are left out. The
// least important column comes first each time, the last of equal ones; the first column always
// stays. A last line then names what was left out. A number in a right-aligned column is whole or
// not there.
class Table {
 public:
  enum class Align { kLeft, kRight };
  enum class Tone { kPlain, kGood, kBad, kCaution, kFaint };
  explicit Table(std::vector<std::string> titles);
  // Columns beyond those named stay left-aligned.
  void SetAlign(std::vector<Align> aligns) { aligns_ = std::move(aligns); }
  // How important each column is; columns beyond those named are 0.
  void SetImportance(std::vector<int> importance) { importance_ = std::move(importance); }
  // Cells may come from files: control characters are escaped. REQUIRES: as many cells as titles.
  void Add(std::vector<std::string> cells);
  // The colour of a cell of the row that was added last. REQUIRES: a row, and such a column.
  void SetTone(size_t column, Tone tone);
  // In the style of the process: the title line, then the rows; every line ends in a line feed
  // without trailing blanks.
  std::string Text() const;
  std::string Text(const TableStyle& style) const;

 private:
  struct Cell {
    std::string text;
    Tone tone = Tone::kPlain;
  };
  friend class TableLayout;

  std::string Markdown() const;
  std::string Csv() const;

  std::vector<std::string> titles_;
  std::vector<Align> aligns_;
  std::vector<int> importance_;
  std::vector<std::vector<Cell>> rows_;
};

// The tone of a gain: good above one, bad below.
Table::Tone ToneOfGain(double gain);
// "12.1 [11.9, 12.4]" without the interval: "12.1". Also for a title: "time us [95 %]".
std::string WithoutInterval(const std::string& text);

}  // namespace diapason::report
