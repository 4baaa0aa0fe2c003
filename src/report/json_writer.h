#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace diapason::report {

// Writes JSON that may stand inside an HTML page: whatever a text holds, no byte of it can end the
// element it stands in. Bytes that are no UTF-8 become U+FFFD. Compact: no blanks.
class JsonWriter {
 public:
  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }
  void Key(std::string_view name);

  void Text(std::string_view text);
  void Integer(int64_t value);
  void Unsigned(uint64_t value);
  void Bool(bool value);
  // Five digits: more are noise. What is no number is null.
  void Number(double value);

  // A key and its value.
  void Text(std::string_view name, std::string_view text) { Key(name), Text(text); }
  void Integer(std::string_view name, int64_t value) { Key(name), Integer(value); }
  void Unsigned(std::string_view name, uint64_t value) { Key(name), Unsigned(value); }
  void Bool(std::string_view name, bool value) { Key(name), Bool(value); }
  void Number(std::string_view name, double value) { Key(name), Number(value); }
  void Texts(std::string_view name, const std::vector<std::string>& texts);

  const std::string& text() const { return text_; }

 private:
  void Separate();
  void Open(char bracket);
  void Close(char bracket);

  std::string text_;
  bool first_ = true;  // nothing stands before in this object or list
};

// Text as HTML has it, in elements and in quoted attributes.
std::string HtmlText(std::string_view text);

}  // namespace diapason::report
