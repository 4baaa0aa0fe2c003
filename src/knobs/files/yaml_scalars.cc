#include "knobs/files/yaml_scalars.h"

#include <algorithm>

#include "base/text.h"
#include "knobs/files/collector.h"

namespace diapason::knobs {
namespace {

constexpr size_t kMostLines = 20000;    // of one value
constexpr size_t kLongestFlow = 65536;  // bytes
constexpr size_t kMostGathered = 200;   // lines of a text in quotes or brackets
constexpr size_t kMostEntries = 10000;

size_t IndentOf(std::string_view line) {
  const size_t column = line.find_first_not_of(' ');
  return column == std::string_view::npos ? line.size() : column;
}

// Without "&anchor" and "!!tag" in front.
std::string_view WithoutTags(std::string_view text) {
  while (!text.empty() && (text[0] == '&' || text[0] == '!')) {
    const size_t end = text.find(' ');
    text = end == std::string_view::npos ? "" : Trim(text.substr(end));
  }
  return text;
}

// The end of the quoted text that begins at 0; npos if it is not closed.
size_t Closing(std::string_view text) {
  const char quote = text[0];
  for (size_t i = 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '\'' && i + 1 < text.size() && text[i + 1] == '\'') {
        ++i;
      } else {
        return i;
      }
    }
  }
  return std::string_view::npos;
}

std::string Unquoted(std::string_view text) {
  const char quote = text[0];
  std::string plain;
  const size_t end = std::min(Closing(text), text.size());
  for (size_t i = 1; i < end; ++i) {
    if (quote == '"' && text[i] == '\\' && i + 1 < end) {
      const char c = text[++i];
      plain += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    } else {
      plain += text[i];
      if (quote == '\'' && text[i] == '\'') ++i;
    }
  }
  return plain;
}

std::string PlainScalar(std::string_view text) {
  const size_t comment = text.find(" #");
  return std::string(Trim(text.substr(0, comment)));
}

YamlValue Block(const std::vector<std::string_view>& lines, size_t* i, size_t column) {
  YamlValue value;
  value.kind = YamlValue::Kind::kBlock;
  value.line = *i + 1;
  size_t indent = std::string_view::npos;
  while (*i + 1 < lines.size() && *i + 1 - value.line < kMostLines) {
    const std::string_view line = lines[*i + 1];
    const bool blank = Trim(line).empty();
    if (!blank && IndentOf(line) <= column) break;
    if (!blank) indent = std::min(indent, IndentOf(line));
    ++*i;
  }
  for (size_t n = value.line; n <= *i; ++n) {
    const std::string_view line = lines[n];
    value.text += std::string(line.substr(std::min(indent, line.size()))) + "\n";
  }
  return value;
}

// The text up to its closing quote or bracket, which may stand on a later line.
std::string Gathered(const std::vector<std::string_view>& lines, size_t* i, std::string text,
                     bool (*closed)(const std::string&)) {
  const size_t first = *i;
  while (!closed(text)) {
    if (*i + 1 >= lines.size() || *i - first > kMostGathered || text.size() > kLongestFlow) break;
    text += "\n" + std::string(Trim(lines[++*i]));
  }
  return text;
}

bool QuoteCloses(const std::string& text) { return Closing(text) != std::string_view::npos; }

bool BracketCloses(const std::string& text) {
  size_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      const size_t end = Closing(std::string_view(text).substr(i));
      if (end == std::string_view::npos) return false;
      i += end;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return true;
    }
  }
  return false;
}

// One part of a flow text: "A: 1", "'x'".
void AddEntry(std::string_view part, size_t line, std::vector<FlowEntry>* entries) {
  part = Trim(part);
  if (part.empty() || entries->size() >= kMostEntries) return;
  FlowEntry entry;
  entry.line = line;
  std::string value(part);
  if (const std::optional<YamlKey> key = SplitYamlKey(part)) {
    entry.key = key->key;
    value = key->rest;
  } else if (part[0] == '"' && Closing(part) + 1 < part.size() && part[Closing(part) + 1] == ':') {
    entry.key = Unquoted(part);  // JSON: no blank after the colon
    value = std::string(Trim(part.substr(Closing(part) + 2)));
  }
  if (value.empty()) return;
  const bool quoted = value[0] == '"' || value[0] == '\'';
  entry.value = quoted ? Unquoted(value) : PlainScalar(value);
  entry.known = !IsTemplate(entry.value) && value[0] != '*';
  entries->push_back(std::move(entry));
}

}  // namespace

std::optional<YamlKey> SplitYamlKey(std::string_view line) {
  size_t end = 0;
  std::string key;
  if (!line.empty() && (line[0] == '"' || line[0] == '\'')) {
    end = Closing(line);
    if (end == std::string_view::npos) return std::nullopt;
    key = Unquoted(line);
    ++end;
  } else {
    end = line.find(": ");
    if (end == std::string_view::npos && line.ends_with(':')) end = line.size() - 1;
    if (end == std::string_view::npos) return std::nullopt;
    key = std::string(line.substr(0, end));
    if (key.find_first_of("{[\"'=#") != std::string::npos || key.find(' ') != std::string::npos) {
      return std::nullopt;
    }
  }
  while (end < line.size() && line[end] == ' ') ++end;
  if (end >= line.size() || line[end] != ':') return std::nullopt;
  if (end + 1 < line.size() && line[end + 1] != ' ' && line[end + 1] != '\t') return std::nullopt;
  return YamlKey{key, std::string(Trim(line.substr(end + 1)))};
}

YamlValue ReadYamlValue(const std::vector<std::string_view>& lines, size_t* i,
                        const std::string& rest, size_t column) {
  YamlValue value;
  value.line = *i;
  const std::string text(WithoutTags(rest));
  if (text.empty() || text[0] == '#' || text == "null" || text == "~") {
    value.kind = YamlValue::Kind::kNone;
  } else if (text[0] == '|' ||
             (text[0] == '>' && text.find_first_not_of(">-+ 0123456789") == std::string::npos)) {
    return Block(lines, i, column);
  } else if (text[0] == '"' || text[0] == '\'') {
    value.text = Unquoted(Gathered(lines, i, text, QuoteCloses));
    value.quoted = true;
    value.known = !IsTemplate(value.text);
  } else if ((text[0] == '{' && !text.starts_with("{{")) || text[0] == '[') {
    value.kind = YamlValue::Kind::kFlow;
    value.text = Gathered(lines, i, text, BracketCloses);
  } else {
    value.text = PlainScalar(text);
    value.known = text[0] != '*' && !IsTemplate(value.text);
    // A plain text goes on in lines that are indented deeper and have no key.
    while (*i + 1 < lines.size() && *i - value.line < kMostLines) {
      const std::string_view next = lines[*i + 1];
      const std::string_view trimmed = Trim(next);
      if (trimmed.empty() || IndentOf(next) <= column || trimmed[0] == '#' ||
          trimmed.starts_with("- ") || SplitYamlKey(trimmed)) {
        break;
      }
      value.text += "\n" + PlainScalar(trimmed);
      ++*i;
    }
  }
  return value;
}

std::vector<FlowEntry> ReadFlow(const std::string& text) {
  std::vector<FlowEntry> entries;
  std::string part;
  size_t line = 0;
  size_t part_line = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      const size_t end = std::min(Closing(std::string_view(text).substr(i)), text.size() - i - 1);
      part += text.substr(i, end + 1);
      line += static_cast<size_t>(std::count(text.begin() + static_cast<long>(i),
                                             text.begin() + static_cast<long>(i + end + 1), '\n'));
      i += end;
    } else if (c == ',' || c == '[' || c == ']' || c == '{' || c == '}') {
      AddEntry(part, part_line, &entries);
      part.clear();
      part_line = line;
    } else {
      if (c == '\n') ++line;
      if (Trim(part).empty()) part_line = line;
      part += c == '\n' ? ' ' : c;
    }
  }
  AddEntry(part, part_line, &entries);
  return entries;
}

}  // namespace diapason::knobs
