#include "report/json_writer.h"

#include <cmath>

#include "base/printable.h"
#include "base/text.h"

namespace diapason::report {
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
  text_ += JsonString(text);
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
  text_ += std::isfinite(value) ? Format("{:.5g}", value) : "null";
}

void JsonWriter::Texts(std::string_view name, const std::vector<std::string>& texts) {
  Key(name);
  BeginArray();
  for (const std::string& text : texts) Text(text);
  EndArray();
}

}  // namespace diapason::report
