#include "knobs/files/tokens.h"

#include <algorithm>

#include "base/text.h"

namespace diapason::knobs {
namespace {

constexpr size_t kMostTokens = 1000000;
using Kind = Token::Kind;

bool IsLetter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Strings, names, numbers and signs of Python, JSON, C and languages alike.
class Tokenizer {
 public:
  Tokenizer(std::string_view text, bool hash, size_t line)
      : text_(text), hash_(hash), line_(line) {}

  std::vector<Token> Run() {
    while (at_ < text_.size() && tokens_.size() < kMostTokens) Step();
    Push(Kind::kLineEnd, "");
    return std::move(tokens_);
  }

 private:
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void Push(Kind kind, std::string text, bool formatted = false) {
    tokens_.push_back({kind, std::move(text), token_line_, formatted, token_column_});
  }
  void SkipLine() { at_ = std::min(text_.find('\n', at_), text_.size()); }

  void Step() {
    const char c = Peek();
    token_line_ = line_;
    token_column_ = at_ - line_begin_;
    if (c == '\n') {
      Push(Kind::kLineEnd, "");
      ++line_;
      line_begin_ = ++at_;
    } else if (c == '\\' && Peek(1) == '\n') {
      at_ += 2;
      ++line_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if ((hash_ && c == '#') || (!hash_ && c == '/' && Peek(1) == '/')) {
      SkipLine();
    } else if (!hash_ && c == '/' && Peek(1) == '*') {
      const size_t end = std::min(text_.find("*/", at_ + 2), text_.size());
      line_ += static_cast<size_t>(std::count(text_.begin() + static_cast<long>(at_),
                                              text_.begin() + static_cast<long>(end), '\n'));
      at_ = std::min(end + 2, text_.size());
    } else if (c == '"' || c == '\'') {
      String(false, false);
    } else if (IsLetter(c)) {
      Name();
    } else if (IsDigit(c)) {
      const size_t begin = at_;
      while (IsDigit(Peek()) || IsLetter(Peek()) || Peek() == '.') ++at_;
      Push(Kind::kNumber, std::string(text_.substr(begin, at_ - begin)));
    } else {
      Push(Kind::kSign, std::string(1, c));
      ++at_;
    }
  }

  void Name() {
    const size_t begin = at_;
    while (IsLetter(Peek()) || IsDigit(Peek())) ++at_;
    const std::string name(text_.substr(begin, at_ - begin));
    // Prefixes of Python's strings: r"", b"", f"", rf"".
    if ((Peek() == '"' || Peek() == '\'') && name.size() <= 2) {
      const std::string lower = ToLower(name);
      if (lower.find_first_not_of("rbuf") == std::string::npos) {
        return String(lower.find('f') != std::string::npos, lower.find('r') != std::string::npos);
      }
    }
    Push(Kind::kName, name);
  }

  void String(bool formatted, bool raw) {
    const char quote = Peek();
    const bool triple = Peek(1) == quote && Peek(2) == quote;
    at_ += triple ? 3 : 1;
    std::string text;
    while (at_ < text_.size()) {
      const char c = Peek();
      if (c == quote && (!triple || (Peek(1) == quote && Peek(2) == quote))) break;
      if (c == '\n' && !triple) break;  // not closed
      if (c == '\\' && !raw && at_ + 1 < text_.size()) {
        Escape(&text);
        continue;
      }
      if (c == '\n') ++line_;
      text += c;
      ++at_;
    }
    if (at_ < text_.size() && Peek() == quote) at_ += triple ? 3 : 1;
    Push(Kind::kString, std::move(text), formatted);
  }

  void Escape(std::string* text) {
    const char c = Peek(1);
    if (c == '\n') {
      ++line_;
    } else if (c == 'n') {
      *text += '\n';
    } else if (c == 't') {
      *text += '\t';
    } else if (c == '"' || c == '\'' || c == '\\' || c == '/') {
      *text += c;
    } else {
      *text += '\\';
      *text += c;
    }
    at_ += 2;
  }

  const std::string_view text_;
  const bool hash_;
  size_t line_;
  size_t at_ = 0;
  size_t line_begin_ = 0;
  size_t token_line_ = 1;
  size_t token_column_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> Tokenize(std::string_view text, bool hash_comments, size_t line) {
  return Tokenizer(text, hash_comments, line).Run();
}

}  // namespace diapason::knobs
