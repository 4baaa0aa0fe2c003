#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace diapason::report {

// Writes JSON that is safe inside an HTML page: no text can end the enclosing element. Invalid
// UTF-8 becomes U+FFFD. Compact: no blanks.
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
  // Five digits. NaN and infinity become null.
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
  bool first_ = true;  // no element precedes in this object or list
};

// A list of objects, each written by `write`.
template <typename Rows, typename Write>
void WriteList(JsonWriter* json, const char* name, const Rows& rows, const Write& write) {
  json->Key(name);
  json->BeginArray();
  for (const auto& row : rows) {
    json->BeginObject();
    write(row);
    json->EndObject();
  }
  json->EndArray();
}

}  // namespace diapason::report
