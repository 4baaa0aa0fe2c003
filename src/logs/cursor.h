#pragma once

#include <cstdint>
#include <string_view>

namespace diapason::logs {

// A position in one line that moves right. Every step returns whether it succeeded; a failed step
// leaves the position unchanged. Nothing is copied.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  std::string_view rest() const { return rest_; }
  bool AtEnd() const { return rest_.empty(); }

  bool Skip(std::string_view literal) {
    if (!rest_.starts_with(literal)) return false;
    rest_.remove_prefix(literal.size());
    return true;
  }
  // Moves behind the next occurrence.
  bool SkipTo(std::string_view literal) {
    const size_t at = rest_.find(literal);
    if (at == std::string_view::npos) return false;
    rest_.remove_prefix(at + literal.size());
    return true;
  }
  void Blanks() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t')) rest_.remove_prefix(1);
  }
  // The text up to the next blank; "" at the end.
  std::string_view Word() {
    Blanks();
    size_t end = 0;
    while (end < rest_.size() && rest_[end] != ' ' && rest_[end] != '\t') ++end;
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }
  // Everything before `literal`, which is skipped too.
  bool Until(std::string_view literal, std::string_view* text) {
    const size_t at = rest_.find(literal);
    if (at == std::string_view::npos) return false;
    *text = rest_.substr(0, at);
    rest_.remove_prefix(at + literal.size());
    return true;
  }

  // Digits with an optional sign. Fails on overflow.
  bool Number(int64_t* value) {
    size_t at = !rest_.empty() && rest_[0] == '-' ? 1 : 0;
    const bool negative = at == 1;
    const size_t first = at;
    int64_t sum = 0;
    while (at < rest_.size() && rest_[at] >= '0' && rest_[at] <= '9') {
      if (at - first >= 18) return false;
      sum = sum * 10 + (rest_[at] - '0');
      ++at;
    }
    if (at == first) return false;
    *value = negative ? -sum : sum;
    rest_.remove_prefix(at);
    return true;
  }
  // Hexadecimal digits, with 0x or without.
  bool Hex(uint64_t* value) {
    size_t at = rest_.starts_with("0x") ? 2 : 0;
    const size_t first = at;
    uint64_t sum = 0;
    while (at < rest_.size()) {
      const char c = rest_[at];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) break;
      if (at - first >= 16) return false;
      sum = sum * 16 + static_cast<uint64_t>(digit);
      ++at;
    }
    if (at == first) return false;
    *value = sum;
    rest_.remove_prefix(at);
    return true;
  }
  // "12.5", "1e+06", "0.00": what printf writes for a finite number.
  bool Real(double* value);

 private:
  std::string_view rest_;
};

}  // namespace diapason::logs
