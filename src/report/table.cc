#include "report/table.h"

#include <algorithm>

#include "base/printable.h"
#include "report/table_layout.h"

namespace diapason::report {
namespace {

TableStyle& Style() {
  static TableStyle style;
  return style;
}

std::string MarkdownCell(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '`' || c == '*' || c == '<') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string CsvCell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

void SetTableStyle(const TableStyle& style) { Style() = style; }
const TableStyle& CurrentTableStyle() { return Style(); }

std::vector<std::string> TablesOf(std::string_view text) {
  std::vector<std::string> tables;
  for (size_t at = text.find(kTableBegin); at != std::string_view::npos;
       at = text.find(kTableBegin, at)) {
    const size_t end = std::min(text.find(kTableEnd, at), text.size());
    tables.emplace_back(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return tables;
}

Table::Table(std::vector<std::string> titles) : titles_(std::move(titles)) {
  for (std::string& title : titles_) title = Printable(title);
}

void Table::Add(std::vector<std::string> cells) {
  std::vector<Cell> row;
  for (const std::string& cell : cells) row.push_back({Printable(cell)});
  row.resize(titles_.size());
  rows_.push_back(std::move(row));
}

void Table::SetTone(size_t column, Tone tone) { rows_.back()[column].tone = tone; }

std::string Table::Text() const { return Text(CurrentTableStyle()); }

std::string Table::Text(const TableStyle& style) const {
  switch (style.format) {
    case TableFormat::kMarkdown:
      return kTableBegin + Markdown() + kTableEnd;
    case TableFormat::kCsv:
      return kTableBegin + Csv() + kTableEnd;
    case TableFormat::kText:
      break;
  }
  return TableLayout(*this, style.columns).Text(style.colours);
}

std::string Table::Markdown() const {
  std::string text = "|";
  for (const std::string& title : titles_) text += " " + MarkdownCell(title) + " |";
  text += "\n|";
  for (size_t i = 0; i < titles_.size(); ++i) {
    text += i < aligns_.size() && aligns_[i] == Align::kRight ? "---:|" : "---|";
  }
  text += "\n";
  for (const std::vector<Cell>& row : rows_) {
    text += "|";
    for (const Cell& cell : row) text += " " + MarkdownCell(cell.text) + " |";
    text += "\n";
  }
  return text;
}

std::string Table::Csv() const {
  std::string text;
  for (size_t i = 0; i < titles_.size(); ++i) text += (i > 0 ? "," : "") + CsvCell(titles_[i]);
  text += "\n";
  for (const std::vector<Cell>& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) text += (i > 0 ? "," : "") + CsvCell(row[i].text);
    text += "\n";
  }
  return text;
}

Table::Tone ToneOfGain(double gain) {
  // As it is written, with two digits: a gain that reads 1.00 has no colour.
  if (gain >= 1.005) return Table::Tone::kGood;
  return gain > 0 && gain < 0.995 ? Table::Tone::kBad : Table::Tone::kPlain;
}

std::string WithoutInterval(const std::string& text) {
  if (text.starts_with('[') || text.starts_with('(')) return text;
  for (const auto& [open, close] : {std::pair(" [", ']'), std::pair(" (", ')')}) {
    const size_t at = text.find(open);
    if (at != std::string::npos && text.back() == close) return text.substr(0, at);
  }
  return text;
}

}  // namespace diapason::report
