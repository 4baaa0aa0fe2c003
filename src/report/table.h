#pragma once

#include <string>
#include <vector>

namespace diapason::report {

// A table for a terminal: columns padded to their widest cell, two blanks between them, no lines.
// Text is measured in characters, not bytes.
class Table {
 public:
  enum class Align { kLeft, kRight };
  explicit Table(std::vector<std::string> titles) : titles_(std::move(titles)) {}
  // Columns beyond those named stay left-aligned.
  void SetAlign(std::vector<Align> aligns) { aligns_ = std::move(aligns); }
  // Cells may come from files: control characters are escaped. REQUIRES: as many cells as titles.
  void Add(std::vector<std::string> cells);
  // The title line, then the rows; every line ends in a line feed without trailing blanks.
  std::string Text() const;

 private:
  std::vector<std::string> titles_;
  std::vector<Align> aligns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace diapason::report
