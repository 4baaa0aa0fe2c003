#include "report/json_writer.h"

#include <cmath>

#include "base/printable.h"
#include "base/text.h"

namespace diapason::report {
namespace {

// The length in bytes of the UTF-8 character at `at`; 0: invalid.
size_t CharacterLength(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong, a surrogate, or beyond the last character.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) {
    return 0;
  }
  return length;
}

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

}  // namespace

void JsonWriter::Separate() {
  if (!first_) text_ += ',';
  first_ = false;
}

void JsonWriter::Open(char bracket) {
  Separate();
  text_ += bracket;
  first_ = true;
}

void JsonWriter::Close(char bracket) {
  text_ += bracket;
  first_ = false;
}

void JsonWriter::Key(std::string_view name) {
  Text(name);
  text_ += ':';
  first_ = true;
}

void JsonWriter::Text(std::string_view text) {
  Separate();
  text_ += '"';
  for (size_t i = 0; i < text.size();) {
    const size_t length = CharacterLength(text, i);
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::string_view character = text.substr(i, length);
    i += length == 0 ? 1 : length;
    if (length == 0) {
      text_ += kReplacement;
    } else if (byte < 0x20 || byte == 0x7f || byte == '<' || byte == '>' || byte == '&' ||
               byte == '\'') {
      text_ += Format("\\u%04x", byte);
    } else if (byte == '"' || byte == '\\') {
      text_ += '\\';
      text_ += static_cast<char>(byte);
    } else {
      // Including the Unicode line separators, which end a line of a script.
      text_ += PrintableJson(character);
    }
  }
  text_ += '"';
}

void JsonWriter::Integer(int64_t value) {
  Separate();
  text_ += std::to_string(value);
}

void JsonWriter::Unsigned(uint64_t value) {
  Separate();
  text_ += std::to_string(value);
}

void JsonWriter::Bool(bool value) {
  Separate();
  text_ += value ? "true" : "false";
}

void JsonWriter::Number(double value) {
  Separate();
  text_ += std::isfinite(value) ? Format("%.5g", value) : "null";
}

void JsonWriter::Texts(std::string_view name, const std::vector<std::string>& texts) {
  Key(name);
  BeginArray();
  for (const std::string& text : texts) Text(text);
  EndArray();
}

std::string HtmlText(std::string_view text) {
  std::string html;
  for (size_t i = 0; i < text.size();) {
    const size_t length = CharacterLength(text, i);
    const std::string_view character = text.substr(i, length);
    const auto byte = static_cast<unsigned char>(text[i]);
    i += length == 0 ? 1 : length;
    if (length == 0) {
      html += kReplacement;
    } else if (byte == '<' || byte == '>' || byte == '&' || byte == '"' || byte == '\'') {
      html += Format("&#%d;", byte);
    } else {
      html += byte == '\t' ? std::string(character) : PrintableLines(character);
    }
  }
  return html;
}

}  // namespace diapason::report
