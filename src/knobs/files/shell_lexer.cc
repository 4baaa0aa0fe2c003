#include "knobs/files/shell_lexer.h"

#include <algorithm>

#include "base/text.h"

namespace diapason::knobs {
namespace {

// Quotes that stay open longer are taken for apostrophes.
constexpr size_t kLongestQuote = 65536;
constexpr size_t kMostWords = 100000;

class Lexer {
 public:
  Lexer(std::string_view text, size_t line) : text_(text), line_(line) {}

  ShellText Run() {
    while (at_ < text_.size() && words_ < kMostWords) Step();
    EndCommand("\n");
    return std::move(result_);
  }

 private:
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void Step() {
    const char c = Peek();
    if (c == '\\' && (Peek(1) == '\n' || (Peek(1) == '\r' && Peek(2) == '\n'))) {
      at_ += Peek(1) == '\n' ? 2 : 3;
      ++line_;
    } else if (c == '\n') {
      ++at_;
      EndCommand("\n");
      ++line_;
      Documents();
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '#') {
      Comment();
    } else if (c == ';' || c == '&' || c == '|' || c == '(' || c == ')') {
      Separator(c);
    } else if (c == '<' || c == '>') {
      Redirection(c);
    } else {
      ShellWord word = Word();
      if (!word.text.empty() || word.quoted) Add(std::move(word));
    }
  }

  void Comment() {
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    const bool first = at_ == 0 || text_[at_ - 1] == '\n';
    for (const char* directive : {"#SBATCH", "#PBS", "#BSUB", "#$ "}) {
      if (first && line.starts_with(directive)) {
        result_.directives.push_back(
            {std::string(line.substr(std::string_view(directive).size())), line_});
      }
    }
    at_ = end;
  }

  void Separator(char c) {
    std::string separator(1, c);
    if (Peek(1) == c && c != '(' && c != ')') separator += c;
    if (c == '&' && Peek(1) == '>') {  // "&>file"
      ++at_;
      return Redirection('>');
    }
    at_ += separator.size();
    EndCommand(separator);
  }

  void Redirection(char c) {
    if (c == '<' && Peek(1) == '<' && Peek(2) == '<') {
      at_ += 3;
      return;  // a here-string: its word is an argument
    }
    if (c == '<' && Peek(1) == '<') {
      at_ += 2;
      const bool tabs = Peek() == '-';
      if (tabs) ++at_;
      Blanks();
      waiting_.push_back({Word().text, tabs});
      return;
    }
    if (Peek(1) == '(') {  // <(command)
      at_ += 2;
      return EndCommand("(");
    }
    while (Peek() == '<' || Peek() == '>' || Peek() == '&' || Peek() == '|') ++at_;
    Blanks();
    if (at_ < text_.size() && std::string_view("\n;|&()").find(Peek()) == std::string_view::npos) {
      std::string target = Word().text;
      if (c == '>') command_.targets.push_back(std::move(target));
    }
    // "2>": the number before it is no argument.
    if (!command_.words.empty() && command_.words.back().text == "2") command_.words.pop_back();
  }

  void Blanks() {
    while (Peek() == ' ' || Peek() == '\t') ++at_;
  }

  static bool Ends(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ';' || c == '&' || c == '|' ||
           c == '(' || c == ')' || c == '<' || c == '>';
  }

  ShellWord Word() {
    ShellWord word;
    word.line = line_;
    while (at_ < text_.size()) {
      const char c = Peek();
      if (c == '(' && word.text.ends_with('=') && !in_array_) {
        Array(&word);
        break;
      }
      if (Ends(c)) break;
      if (c == '\'') {
        Single(&word);
      } else if (c == '"') {
        Double(&word);
      } else if (c == '\\') {
        Escape(&word);
      } else if (c == '$' || c == '`') {
        Expansion(&word);
      } else {
        word.text += c;
        ++at_;
      }
    }
    return word;
  }

  void Escape(ShellWord* word) {
    ++at_;
    if (at_ >= text_.size()) return;
    if (Peek() == '\r' && Peek(1) == '\n') ++at_;
    if (Peek() == '\n') {
      ++line_;
    } else {
      word->text += Peek();
    }
    ++at_;
  }

  // The end of a quote that begins at `from`; npos where it is an apostrophe.
  size_t QuoteEnd(size_t from, char quote) const {
    for (size_t i = from; i < text_.size() && i - from < kLongestQuote; ++i) {
      if (text_[i] == '\\' && quote == '"') {
        ++i;
      } else if (text_[i] == quote) {
        return i;
      }
    }
    return std::string_view::npos;
  }

  void Single(ShellWord* word) {
    const size_t end = QuoteEnd(at_ + 1, '\'');
    if (end == std::string_view::npos) {
      ++at_;
      return;
    }
    word->quoted = true;
    for (++at_; at_ < end; ++at_) Take(word);
    ++at_;
  }

  void Take(ShellWord* word) {
    if (Peek() == '\n') ++line_;
    word->text += Peek();
  }

  void Double(ShellWord* word) {
    const size_t end = QuoteEnd(at_ + 1, '"');
    ++at_;
    if (end == std::string_view::npos) return;
    word->quoted = true;
    while (at_ < text_.size() && Peek() != '"') {
      const char c = Peek();
      const char next = Peek(1);
      if (c == '\\' && (next == '"' || next == '\\' || next == '$' || next == '`')) {
        word->text += next;
        at_ += 2;
      } else if (c == '\\' && next == '\n') {
        ++line_;
        at_ += 2;
        word->text += ' ';
      } else if (c == '$' || c == '`') {
        Expansion(word);
      } else {
        Take(word);
        ++at_;
      }
    }
    ++at_;
  }

  // "$X", "${X:-1}", "$(command)", "`command`": copied as written.
  void Expansion(ShellWord* word) {
    const char c = Peek();
    const char next = Peek(1);
    if (c == '`') {
      word->expands = true;
      const size_t end = QuoteEnd(at_ + 1, '`');
      const size_t stop = end == std::string_view::npos ? at_ : end;
      for (; at_ <= stop && at_ < text_.size(); ++at_) Take(word);
      return;
    }
    if (next == '{' || next == '(') {
      word->expands = true;
      const char open = next;
      const char close = next == '{' ? '}' : ')';
      size_t depth = 0;
      for (size_t taken = 0; at_ < text_.size() && taken < kLongestQuote; ++taken) {
        const char now = Peek();
        if (now == open) ++depth;
        const bool last = now == close && --depth == 0;
        Take(word);
        ++at_;
        if (last) return;
      }
      return;
    }
    const bool name = (next >= 'A' && next <= 'Z') || (next >= 'a' && next <= 'z') ||
                      (next >= '0' && next <= '9') || next == '_' || next == '@' || next == '*' ||
                      next == '#' || next == '?' || next == '$' || next == '!';
    word->expands = word->expands || name;
    word->text += c;
    ++at_;
    if (name) {
      word->text += next;
      ++at_;
    }
  }

  // NAME=( a b ): the words up to the closing parenthesis.
  void Array(ShellWord* word) {
    ++at_;
    in_array_ = true;
    while (at_ < text_.size() && Peek() != ')' && words_ < kMostWords) {
      const char c = Peek();
      if (c == '\n') {
        ++line_;
        ++at_;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (Ends(c) || (c == '\\' && Peek(1) == '\n')) {
        if (c == '\\') {
          ++line_;
          ++at_;
        }
        ++at_;
      } else {
        word->array.push_back(Word());
        ++words_;
      }
    }
    in_array_ = false;
    ++at_;
  }

  void Add(ShellWord word) {
    ++words_;
    command_.words.push_back(std::move(word));
  }

  void EndCommand(const std::string& separator) {
    command_.separator = separator;
    const bool block = separator == "(" || separator == ")" || separator == ";;";
    if (!command_.words.empty() || !command_.targets.empty() || block || !waiting_.empty()) {
      result_.commands.push_back(std::move(command_));
    }
    command_ = ShellCommand();
  }

  // The bodies of << after the line that named them.
  void Documents() {
    for (const auto& [delimiter, tabs] : waiting_) {
      HereDocument document;
      document.line = line_;
      while (at_ < text_.size()) {
        const size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string_view line = text_.substr(at_, end - at_);
        at_ = std::min(end + 1, text_.size());
        ++line_;
        if (line.ends_with('\r')) line.remove_suffix(1);
        std::string_view bare = line;
        while (tabs && bare.starts_with('\t')) bare.remove_prefix(1);
        if (bare == delimiter) break;
        document.text += std::string(line) + "\n";
      }
      if (!result_.commands.empty()) {
        result_.commands.back().documents.push_back(std::move(document));
      }
    }
    waiting_.clear();
  }

  const std::string_view text_;
  size_t line_;
  size_t at_ = 0;
  size_t words_ = 0;
  bool in_array_ = false;
  ShellCommand command_;
  std::vector<std::pair<std::string, bool>> waiting_;
  ShellText result_;
};

}  // namespace

ShellText SplitShell(std::string_view text, size_t first_line) {
  return Lexer(text, first_line).Run();
}

}  // namespace diapason::knobs
