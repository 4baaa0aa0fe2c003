#include "job/shell_text.h"

#include <algorithm>

namespace diapason::job {
namespace {

constexpr std::string_view kEnds = ";&|()\n";
constexpr std::string_view kKeywords[] = {"if",  "then",  "else",  "elif", "fi",
                                          "for", "while", "until", "do",   "done",
                                          "{",   "}",     "!",     "exec", "time"};

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<std::vector<ShellTextWord>> Read() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (IsBlank(c) || (c == '\\' && Next() == '\n')) {
        at_ += c == '\\' ? 2 : 1;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '<' || c == '>') {
        skip_next_ = true;
        ++at_;
        while (at_ < text_.size() &&
               (text_[at_] == '>' || text_[at_] == '<' || text_[at_] == '&')) {
          ++at_;
        }
      } else if (kEnds.find(c) != std::string_view::npos) {
        EndCommand();
        ++at_;
      } else {
        ReadWord();
      }
    }
    EndCommand();
    return std::move(commands_);
  }

 private:
  char Next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }

  // $(...) and `...` belong to the word they stand in.
  size_t EndOfSubstitution(size_t from) const {
    int depth = 0;
    for (size_t i = from; i < text_.size(); ++i) {
      if (text_[i] == '(') ++depth;
      if (text_[i] == ')' && --depth == 0) return i + 1;
    }
    return text_.size();
  }

  void ReadWord() {
    ShellTextWord word;
    word.begin = at_;
    char quote = '\0';
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (quote == '\0' &&
          (IsBlank(c) || kEnds.find(c) != std::string_view::npos || c == '<' || c == '>')) {
        break;
      }
      if (quote != '\'' && c == '$' && Next() == '(') {
        const size_t end = EndOfSubstitution(at_ + 1);
        word.text += text_.substr(at_, end - at_);
        at_ = end;
      } else if (quote != '\'' && c == '\\' && at_ + 1 < text_.size()) {
        if (text_[at_ + 1] != '\n') word.text += text_[at_ + 1];
        at_ += 2;
      } else if (c == quote) {
        quote = '\0';
        ++at_;
      } else if (quote == '\0' && (c == '\'' || c == '"')) {
        quote = c;
        ++at_;
      } else {
        word.text += c;
        ++at_;
      }
    }
    word.end = at_;
    // "2>file": the number belongs to the redirection.
    const bool number = at_ < text_.size() && (text_[at_] == '<' || text_[at_] == '>') &&
                        word.text.find_first_not_of("0123456789") == std::string::npos;
    if (std::exchange(skip_next_, false) || number) return;
    const bool keyword = words_.empty() && std::find(std::begin(kKeywords), std::end(kKeywords),
                                                     word.text) != std::end(kKeywords);
    if (!keyword) words_.push_back(std::move(word));
  }

  void EndCommand() {
    skip_next_ = false;
    if (!words_.empty()) commands_.push_back(std::move(words_));
    words_.clear();
  }

  std::string_view text_;
  size_t at_ = 0;
  bool skip_next_ = false;
  std::vector<ShellTextWord> words_;
  std::vector<std::vector<ShellTextWord>> commands_;
};

}  // namespace

std::vector<std::vector<ShellTextWord>> SimpleCommands(std::string_view text) {
  if (text.find("<<") != std::string_view::npos) return {};
  return Lexer(text).Read();
}

}  // namespace diapason::job
