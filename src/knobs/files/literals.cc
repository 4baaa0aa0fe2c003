#include <algorithm>
#include <optional>

#include "base/text.h"
#include "knobs/files/collector.h"
#include "knobs/files/tokens.h"

namespace diapason::knobs {
namespace {

constexpr size_t kLongestExpression = 64;
using Kind = Token::Kind;

struct Value {
  std::string text;
  bool known = true;
  bool none = false;    // None, null: not set
  bool number = false;  // 1, True: no text
};

class LiteralReader {
 public:
  LiteralReader(std::vector<Token> tokens, bool python, const Nested& at, Collector* out)
      : tokens_(std::move(tokens)), python_(python), at_(at), out_(*out) {
    scopes_.push_back(at.scope);
  }

  void Run() {
    for (i_ = 0; i_ < tokens_.size() && !out_.Full(); ++i_) {
      const Token& token = tokens_[i_];
      if (token.kind == Kind::kLineEnd) continue;
      if (python_ && Depth() == 0 && (i_ == 0 || tokens_[i_ - 1].kind == Kind::kLineEnd)) Indent();
      if (token.kind == Kind::kSign) {
        Sign(token.text[0]);
      } else if (token.kind == Kind::kString) {
        String(token);
      } else if (token.kind == Kind::kName) {
        Name(token);
      }
    }
  }

 private:
  struct Bracket {
    char open;
    bool update = false;  // of update({...}): holds for the scope around it
    std::string named;    // of {"name": NAME, "value": ...}
    size_t named_line = 0;
    std::optional<Value> value;
    std::string own;  // the scope of keyword arguments
  };

  size_t Depth() const { return brackets_.size(); }
  const std::string& Scope() const { return scopes_.back(); }
  const Token& Ahead(size_t ahead) const {
    static const Token none;
    size_t at = i_;
    // Line ends inside brackets do not count.
    while (ahead > 0 && at + 1 < tokens_.size()) {
      ++at;
      if (tokens_[at].kind == Kind::kLineEnd && Depth() > 0) continue;
      --ahead;
    }
    return ahead == 0 ? tokens_[at] : none;
  }
  bool IsSign(const Token& token, char c) const {
    return token.kind == Kind::kSign && token.text[0] == c;
  }

  // Python's blocks: what is indented deeper than a header that ends in ':' is inside it.
  void Indent() {
    const size_t column = tokens_[i_].column;
    while (!blocks_.empty() && column <= blocks_.back().first) {
      scopes_.pop_back();
      blocks_.pop_back();
    }
    const std::string& word = tokens_[i_].text;
    for (const char* header : {"if", "elif", "else", "def", "class", "for", "while", "try",
                               "except", "finally", "async", "case"}) {
      if (tokens_[i_].kind != Kind::kName || word != header || blocks_.size() > 100) continue;
      blocks_.emplace_back(column, 0);
      scopes_.push_back(out_.NewScope(scopes_.back()));
      return;
    }
  }

  void Sign(char c) {
    if (c == '{' || c == '(' || c == '[') {
      Bracket bracket{c, false, "", 0, std::nullopt, ""};
      const bool after_update = c == '{' && Depth() > 0 && brackets_.back().update;
      if (c == '(' && i_ > 0) bracket.update = tokens_[i_ - 1].text == "update";
      // A dictionary is an environment of its own, unless os.environ takes it over.
      // So is a list of arguments; os.environ["A"] is no list.
      const Token* before = i_ > 0 ? &tokens_[i_ - 1] : nullptr;
      const bool subscript = before != nullptr && (before->kind == Kind::kName ||
                                                   IsSign(*before, ']') || IsSign(*before, ')'));
      const bool own = (c == '{' && !after_update) || (c == '[' && !subscript);
      scopes_.push_back(own ? out_.NewScope(Scope(), /*command=*/true) : Scope());
      if (brackets_.size() < 1000)
        brackets_.push_back(std::move(bracket));
      else
        scopes_.pop_back();
    } else if ((c == '}' || c == ')' || c == ']') && Depth() > 0) {
      Close();
      brackets_.pop_back();
      scopes_.pop_back();
    }
  }

  // {"name": "NCCL_DEBUG", "value": "INFO"}, and EnvVar(name=..., value=...).
  void Close() {
    const Bracket& bracket = brackets_.back();
    if (bracket.named.empty()) return;
    const std::string outer = scopes_.size() > 1 ? scopes_[scopes_.size() - 2] : Scope();
    if (bracket.value) {
      out_.Set(bracket.named, bracket.value->text, bracket.value->known, bracket.named_line, outer);
    } else {
      out_.Pass(bracket.named, bracket.named_line, outer);
    }
  }

  // The value from the token `ahead` on: one literal, str(literal), or unknown.
  Value Expression(size_t ahead) const {
    const Token& first = Ahead(ahead);
    const Token& next = Ahead(ahead + 1);
    const bool ends = next.kind == Kind::kLineEnd || IsSign(next, ',') || IsSign(next, '}') ||
                      IsSign(next, ')') || IsSign(next, ']') || IsSign(next, ';');
    if (first.kind == Kind::kString) {
      const bool braces = first.text.find('{') != std::string::npos;
      const bool known = ends && !(first.formatted && braces) && !IsTemplate(first.text);
      return {first.text, known, false, false};
    }
    if (first.kind == Kind::kNumber && ends) return {first.text, true, false, true};
    if (IsSign(first, '-') && next.kind == Kind::kNumber)
      return {"-" + next.text, true, false, true};
    if (first.kind == Kind::kName && ends) {
      if (first.text == "None" || first.text == "null") return {"", true, true, false};
      const std::string lower = ToLower(first.text);
      if (lower == "true" || lower == "false") return {first.text, true, false, true};
    }
    if (first.kind == Kind::kName && first.text == "str" && IsSign(next, '(') &&
        IsSign(Ahead(ahead + 3), ')')) {
      const Token& inside = Ahead(ahead + 2);
      if (inside.kind == Kind::kNumber || inside.kind == Kind::kString) {
        return {inside.text, true, false, false};
      }
    }
    return {Written(ahead), false, false, false};
  }

  // An expression as text, for the evidence.
  std::string Written(size_t ahead) const {
    std::string text;
    size_t depth = 0;
    for (size_t n = ahead; n < ahead + 12; ++n) {
      const Token& token = Ahead(n);
      if (token.kind == Kind::kLineEnd) break;
      const bool close = IsSign(token, '}') || IsSign(token, ')') || IsSign(token, ']');
      if (depth == 0 && (close || IsSign(token, ','))) break;
      if (close) --depth;
      if (IsSign(token, '(') || IsSign(token, '[') || IsSign(token, '{')) ++depth;
      const bool word = token.kind != Kind::kSign;
      if (word && !text.empty() && text.back() != '(' && text.back() != '[' && text.back() != '.') {
        text += ' ';
      }
      text += token.kind == Kind::kString ? "\"" + token.text + "\"" : token.text;
      if (text.size() > kLongestExpression) break;
    }
    return text.substr(0, kLongestExpression);
  }

  void Put(const std::string& name, size_t line, const Value& value) {
    if (value.none) return;
    // A sentence is a description, not a value.
    const bool sentence = std::count(value.text.begin(), value.text.end(), ' ') > 1;
    out_.Set(name, value.text, value.known && !sentence, line, Scope());
  }

  void String(const Token& token) {
    if (CountsInFiles(token.text)) {
      if (IsSign(Ahead(1), ':') && Depth() > 0) {  // a key of a dictionary
        const Value value = Expression(2);
        if (!IsSign(Ahead(2), '{') && !IsSign(Ahead(2), '[')) Put(token.text, token.line, value);
        return;
      }
      if (Removed(token) || Subscript(token) || Call(token)) return;
    }
    if (Depth() > 0 && IsSign(Ahead(1), ':')) Member(token.text, 2);
    Text(token);
  }

  // "name" and "value" of the bracket around them.
  void Member(const std::string& key, size_t ahead) {
    Bracket& bracket = brackets_.back();
    if (key == "name" && Ahead(ahead).kind == Kind::kString && CountsInFiles(Ahead(ahead).text)) {
      bracket.named = Ahead(ahead).text;
      bracket.named_line = Ahead(ahead).line;
    } else if (key == "value") {
      bracket.value = Expression(ahead);
    }
  }

  // os.environ.pop("A"), del os.environ["A"]
  bool Removed(const Token& token) {
    const bool popped =
        i_ >= 2 && (tokens_[i_ - 2].text == "pop" || tokens_[i_ - 2].text == "unsetenv");
    const bool deleted = i_ >= 5 && IsSign(tokens_[i_ - 1], '[') && tokens_[i_ - 5].text == "del";
    if (popped || deleted) out_.Unset(token.text, token.line, Scope());
    return popped || deleted;
  }

  // os.environ["A"] = "1"
  bool Subscript(const Token& token) {
    if (Depth() == 0 || brackets_.back().open != '[' || !IsSign(Ahead(1), ']') ||
        !IsSign(Ahead(2), '=') || IsSign(Ahead(3), '=')) {
      return false;
    }
    // The bracket is closed behind the name: line ends count again, unless there are more around.
    const size_t here = i_;
    brackets_.pop_back();
    i_ += 2;
    const Value value = Expression(1);
    i_ = here;
    brackets_.push_back({'[', false, "", 0, std::nullopt, ""});
    const bool environ = here >= 2 && tokens_[here - 2].text == "environ";
    if (python_ && environ && value.number && value.known) {
      out_.Complain(
          "env.bad-line", Severity::kError, token.line,
          "os.environ takes text: the assignment of " + token.text + " raises a TypeError",
          "Write \"" + value.text + "\"");
    }
    Put(token.text, token.line, value);
    return true;
  }

  // setdefault("A", "1"), putenv("A", "1"), setenv("A", "1", 1)
  bool Call(const Token& token) {
    if (i_ < 2 || !IsSign(tokens_[i_ - 1], '(') || !IsSign(Ahead(1), ',')) return false;
    const std::string& function = tokens_[i_ - 2].text;
    for (const char* sets : {"setdefault", "putenv", "setenv", "setEnv", "set_env", "env", "Setenv",
                             "add_env", "set_var"}) {
      if (function != sets) continue;
      Put(token.text, token.line, Expression(2));
      return true;
    }
    return false;
  }

  void Name(const Token& token) {
    // f(NCCL_DEBUG="INFO"), and {NCCL_DEBUG: INFO} without quotes.
    const bool keyword = Depth() > 0 && IsSign(Ahead(1), '=') && !IsSign(Ahead(2), '=') &&
                         brackets_.back().open == '(';
    const bool key = Depth() > 0 && IsSign(Ahead(1), ':') && brackets_.back().open == '{';
    if (!keyword && !key) return;
    if (!CountsInFiles(token.text)) return Member(token.text, 2);
    Bracket& bracket = brackets_.back();
    // dict(os.environ, A="1") is an environment of its own, os.environ.update(A="1") is not.
    if (bracket.own.empty()) {
      bracket.own = keyword && !bracket.update ? out_.NewScope(Scope(), /*command=*/true) : Scope();
    }
    const Value value = Expression(2);
    scopes_.push_back(bracket.own);
    Put(token.text, token.line, value);
    scopes_.pop_back();
  }

  // "A=1 B=2", "A=1 ./train", "A=1 python x": a sentence such as "A=1 was tried" is none.
  static bool IsCommandLine(std::string_view text) {
    static constexpr std::string_view kPrograms[] = {
        "python",    "python3", "torchrun", "mpirun", "mpiexec", "srun",    "sbatch",  "bash",
        "sh",        "env",     "exec",     "nohup",  "time",    "timeout", "numactl", "accelerate",
        "deepspeed", "ray",     "docker",   "podman", "nsys",    "uv",      "vllm",    "diapason"};
    for (const std::string_view word : Split(text, ' ')) {
      if (word.empty() || word.find('=') != std::string_view::npos) continue;
      return word.find_first_of("/$_;&|\\") != std::string_view::npos ||
             std::find(std::begin(kPrograms), std::end(kPrograms), word) != std::end(kPrograms);
    }
    return true;
  }

  // "NCCL_DEBUG=INFO" as an argument, or a script in a string.
  void Text(const Token& token) {
    if (!HasAssignment(token.text) || at_.depth + 1 >= kDeepest) return;
    const bool one_word = token.text.find_first_of(" \t\n") == std::string::npos;
    const size_t equals = token.text.find('=');
    const std::string name = token.text.substr(0, equals);
    if (one_word && CountsInFiles(name)) {
      const std::string value = token.text.substr(equals + 1);
      const bool braces = token.formatted && value.find('{') != std::string::npos;
      return out_.Set(name, value, !braces && !IsTemplate(value), token.line, Scope());
    }
    const std::string_view trimmed = Trim(token.text);
    const bool first = CountsInFiles(trimmed.substr(0, trimmed.find('=')));
    const bool script = trimmed.starts_with("#!") || trimmed.find("export ") != std::string::npos ||
                        trimmed.find(" -x ") != std::string::npos ||
                        trimmed.find(" -e ") != std::string::npos || one_word ||
                        (first && IsCommandLine(trimmed));
    if (!script) return;
    const std::string text = token.formatted ? Filled(token.text) : token.text;
    ReadShell(text, {token.line, out_.NewScope(Scope(), true), at_.depth + 1}, &out_);
  }

  // The text of f"...": "{x}" becomes an expansion of the shell, which is an unknown value.
  static std::string Filled(const std::string& text) {
    std::string filled;
    for (size_t i = 0; i < text.size(); ++i) {
      const bool doubled = i + 1 < text.size() && text[i + 1] == text[i];
      if (text[i] == '{' && !doubled) {
        const size_t end = text.find('}', i);
        if (end == std::string::npos) return filled;
        filled += "$x";
        i = end;
      } else {
        filled += text[i];
        if ((text[i] == '{' || text[i] == '}') && doubled) ++i;
      }
    }
    return filled;
  }

  const std::vector<Token> tokens_;
  const bool python_;
  const Nested at_;
  Collector& out_;
  size_t i_ = 0;
  std::vector<Bracket> brackets_;
  std::vector<std::string> scopes_;
  std::vector<std::pair<size_t, int>> blocks_;
};

}  // namespace

void ReadLiterals(std::string_view text, bool hash_comments, const Nested& at, Collector* out) {
  if (at.depth >= kDeepest) return;
  LiteralReader(Tokenize(text, hash_comments, at.line), hash_comments, at, out).Run();
}

}  // namespace diapason::knobs
