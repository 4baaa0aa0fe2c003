#include "dataset/csv.h"

#include "base/text.h"

namespace diapason::dataset {
namespace {

constexpr size_t kLongestCell = 1 << 20;
constexpr size_t kMostCells = 1024;

}  // namespace

Result<std::vector<std::string>> TakeCsvRow(std::string_view* text, int* line) {
  std::vector<std::string> cells(1);
  const int first = *line + 1;
  bool quoted = false;
  size_t at = 0;
  for (; at < text->size(); ++at) {
    const char c = (*text)[at];
    if (quoted) {
      if (c == '\n') ++*line;
      if (c != '"') {
        cells.back() += c;
      } else if (at + 1 < text->size() && (*text)[at + 1] == '"') {
        cells.back() += '"';
        ++at;
      } else {
        quoted = false;
      }
    } else if (c == '\n') {
      break;
    } else if (c == ',') {
      cells.emplace_back();
    } else if (c == '"' && Trim(cells.back()).empty()) {
      cells.back().clear();  // blanks after a comma
      quoted = true;
    } else if (c != '\r' || (at + 1 < text->size() && (*text)[at + 1] != '\n')) {
      cells.back() += c;
    }
    if (cells.back().size() > kLongestCell || cells.size() > kMostCells) {
      return Invalid(Format("line {}: too long to be a row of a table", first));
    }
  }
  ++*line;
  if (quoted) return Invalid(Format("line {}: a quotation mark is never closed", first));
  text->remove_prefix(at < text->size() ? at + 1 : at);
  return cells;
}

std::string CsvCell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string cell = "\"";
  for (const char c : text) {
    if (c == '"') cell += '"';
    cell += c;
  }
  return cell + "\"";
}

}  // namespace diapason::dataset
