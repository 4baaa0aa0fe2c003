#include <algorithm>
#include <optional>

#include "base/text.h"
#include "knobs/files/collector.h"
#include "knobs/files/shell_lexer.h"
#include "knobs/files/shell_words.h"

namespace diapason::knobs {
namespace {

bool IsOneOf(std::string_view word, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Blocks in which assignments hold only under a condition, or in another process.
struct Block {
  enum class Kind : uint8_t { kIf, kLoop, kCase, kBrace, kSubshell };
  Kind kind;
  std::string outer;  // the scope around it
};
using Kind = Block::Kind;

class ShellReader {
 public:
  ShellReader(const Nested& at, Collector* out) : at_(at), out_(*out), scope_(at.scope) {}

  void Run(std::string_view text) {
    const bool script = text.starts_with("#!") && at_.depth == 0;
    ShellText split = SplitShell(text, at_.line);
    for (const ShellDirective& one : split.directives) Directive(one);
    for (ShellCommand& one : split.commands) {
      if (out_.Full()) return;
      Command(&one);
    }
    if (script || !split.directives.empty()) NotExported();
  }

 private:
  // "#SBATCH --export=ALL,A=1", "#PBS -v A=1,B=2".
  void Directive(const ShellDirective& one) {
    ShellText split = SplitShell(one.text, one.line);
    if (split.commands.empty()) return;
    ReadLauncherWords(split.commands[0].words, 0, scope_, at_.depth, &out_);
  }

  void Command(ShellCommand* command) {
    std::vector<ShellWord>& words = command->words;
    size_t begin = 0;
    while (begin < words.size() && !words[begin].quoted && Keyword(words, &begin)) {
    }
    if (begin < words.size()) Simple(*command, begin);
    Documents(*command);
    Separator(*command);
  }

  void Push(Kind kind) {
    blocks_.push_back({kind, scope_});
    scope_ = out_.NewScope(scope_);
  }
  void Branch(Kind kind) {
    if (!blocks_.empty() && blocks_.back().kind == kind) {
      scope_ = out_.NewScope(blocks_.back().outer);
    }
  }
  void Pop(Kind kind) {
    if (blocks_.empty() || blocks_.back().kind != kind) return;
    scope_ = blocks_.back().outer;
    blocks_.pop_back();
  }

  // Whether words[*begin] was a word of the shell's grammar; *begin is then after it.
  bool Keyword(const std::vector<ShellWord>& words, size_t* begin) {
    const std::string& word = words[*begin].text;
    ++*begin;
    if (word == "if") {
      Push(Kind::kIf);
    } else if (IsOneOf(word, {"elif", "else", "then"})) {
      if (word != "then") Branch(Kind::kIf);
    } else if (word == "fi") {
      Pop(Kind::kIf);
    } else if (IsOneOf(word, {"while", "until"})) {
      Push(Kind::kLoop);
    } else if (IsOneOf(word, {"for", "select"})) {
      Push(Kind::kLoop);
      *begin = words.size();
    } else if (word == "done") {
      Pop(Kind::kLoop);
    } else if (word == "case") {
      Push(Kind::kCase);
      *begin = words.size();
    } else if (word == "esac") {
      Pop(Kind::kCase);
    } else if (word == "{") {
      Push(Kind::kBrace);
    } else if (word == "}") {
      Pop(Kind::kBrace);
    } else if (word == "function") {
      *begin = words.size();
      if (words.back().text == "{") Push(Kind::kBrace);
    } else if (!IsOneOf(word, {"do", "!", "time"})) {
      --*begin;
      return false;
    }
    return true;
  }

  void Separator(const ShellCommand& command) {
    if (command.separator == ";;") {
      Branch(Kind::kCase);
    } else if (command.separator == "(" && command.words.empty()) {
      Push(Kind::kSubshell);
    } else if (command.separator == ")") {
      Pop(Kind::kSubshell);
    }
  }

  void Simple(const ShellCommand& command, size_t begin) {
    const std::vector<ShellWord>& words = command.words;
    size_t first = begin;
    while (first < words.size() && NamedValue(words[first])) ++first;
    if (first == words.size()) {
      for (size_t i = begin; i < first; ++i) Plain(words[i]);
      return;
    }
    const std::string program = words[first].text.substr(words[first].text.rfind('/') + 1);
    if (first == begin && BuiltIn(command, program, first)) return;
    // "A=1 B=2 program": its own environment.
    std::string own = scope_;
    if (first > begin) {
      Blank(words, begin);
      own = out_.NewScope(scope_, /*command=*/true);
      for (size_t i = begin; i < first; ++i) SetFrom(words[i], own, at_.depth, &out_);
    }
    if (!IgnoresWords(program)) {
      if (own == scope_) own = out_.NewScope(scope_, /*command=*/true);
      ReadLauncherWords(words, first, own, at_.depth, &out_);
    }
  }

  // "A=1" alone.
  void Plain(const ShellWord& word) {
    const std::optional<NameAndValue> pair = NamedValue(word);
    if (!word.array.empty()) {
      const std::string own = out_.NewScope(scope_, /*command=*/true);
      return ReadLauncherWords(word.array, 0, own, at_.depth, &out_);
    }
    SetFrom(word, scope_, at_.depth, &out_);
    if (!all_exported_ && CountsInFiles(pair->name)) plain_.emplace(pair->name, word.line);
  }

  // Builtins that set variables, and those that need no look. True if that was all.
  bool BuiltIn(const ShellCommand& command, const std::string& program, size_t first) {
    const std::vector<ShellWord>& words = command.words;
    if (IsOneOf(program, {"export", "declare", "typeset", "local", "readonly"})) {
      Export(program, words, first);
      return true;
    }
    if (program == "setenv" && first + 1 < words.size()) {
      const bool valued = first + 2 < words.size();
      out_.Set(words[first + 1].text, valued ? words[first + 2].text : "",
               !valued || !words[first + 2].expands, words[first].line, scope_);
      return true;
    }
    if (program == "unset") {
      for (size_t i = first + 1; i < words.size(); ++i) {
        out_.Unset(words[i].text, words[i].line, scope_);
      }
      return true;
    }
    if (program == "set") {
      for (size_t i = first + 1; i < words.size(); ++i) {
        const std::string& word = words[i].text;
        if (word == "allexport" || (word.starts_with('-') && word.find('a') == 1)) {
          all_exported_ = true;
        }
      }
      return true;
    }
    if (program == ":") {
      for (size_t i = first + 1; i < words.size(); ++i) DefaultOf(words[i], scope_, &out_);
      return true;
    }
    if (program == "echo" || program == "printf") {
      Written(command, first);
      return true;
    }
    return Malformed(words, first);
  }

  void Export(const std::string& program, const std::vector<ShellWord>& words, size_t first) {
    size_t named = 0;
    bool exports = program == "export";
    for (size_t i = first + 1; i < words.size(); ++i) {
      const ShellWord& word = words[i];
      if (word.text.starts_with('-')) {
        exports = exports || word.text.find('x') != std::string::npos;
        continue;
      }
      if (NamedValue(word)) {
        if (word.array.empty()) {
          SetFrom(word, scope_, at_.depth, &out_);
        } else {
          ReadLauncherWords(word.array, 0, out_.NewScope(scope_, true), at_.depth, &out_);
        }
        if (exports) exported_.insert(NamedValue(word)->name);
        continue;
      }
      if (++named == 1 && NotAValue(words, i)) return;
      if (!IsIdentifier(word.text)) continue;
      if (exports) exported_.insert(word.text);
      out_.Pass(word.text, word.line, scope_);
    }
    Blank(words, first + 1);
  }

  // "export NCCL_DEBUG = INFO" and "export NCCL_DEBUG INFO" set nothing.
  bool NotAValue(const std::vector<ShellWord>& words, size_t i) {
    const std::string& name = words[i].text;
    if (!CountsInFiles(name) || i + 1 >= words.size()) return false;
    const bool equals = words[i + 1].text == "=";
    const ShellWord& value = words[equals && i + 2 < words.size() ? i + 2 : i + 1];
    if (!equals && (i + 2 != words.size() || CountsInFiles(value.text) ||
                    value.text.find('=') < 99 || Catalogue::BuiltIn().Find(name) == nullptr)) {
      return false;
    }
    out_.Complain("env.bad-line", Severity::kError, words[i].line,
                  "this line does not set " + name + ", for it is not NAME=VALUE",
                  "Write " + name + "=" + (value.expands ? "VALUE" : value.text));
    return true;
  }

  // "NCCL_DEBUG = INFO" as a command.
  bool Malformed(const std::vector<ShellWord>& words, size_t first) {
    if (!CountsInFiles(words[first].text) || first + 2 >= words.size()) return false;
    return words[first + 1].text == "=" && NotAValue(words, first);
  }

  // "NCCL_DEBUG= INFO": a shell sets nothing and runs INFO. Only words that are no program.
  void Blank(const std::vector<ShellWord>& words, size_t begin) {
    if (begin + 2 != words.size() || words[begin].quoted) return;
    const std::optional<NameAndValue> pair = NamedValue(words[begin]);
    const std::string& value = words[begin + 1].text;
    const bool no_program = !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
      return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    });
    if (!pair || !pair->value.empty() || !CountsInFiles(pair->name) || !no_program) return;
    out_.Complain("env.bad-line", Severity::kError, words[begin].line,
                  pair->name + "= is followed by a blank, so a shell sets it to nothing",
                  "Write " + pair->name + "=" + value + " without the blank");
  }

  // echo "A=1" >> file: the file gets the assignment.
  void Written(const ShellCommand& command, size_t first) {
    const bool file = !command.targets.empty() && command.targets[0] != "/dev/null" &&
                      !command.targets[0].starts_with("/dev/std") && command.targets[0] != "2";
    if ((!file && command.separator != "|") || at_.depth + 1 >= kDeepest) return;
    const std::string own = out_.NewScope(scope_, /*command=*/true);
    for (size_t i = first + 1; i < command.words.size(); ++i) {
      const ShellWord& word = command.words[i];
      if (HasAssignment(word.text)) {
        ReadShell(word.text, {word.line, own, at_.depth + 1}, &out_);
      }
    }
  }

  void Documents(const ShellCommand& command) {
    if (at_.depth + 1 >= kDeepest) return;
    std::string name = command.targets.empty() ? "" : command.targets[0];
    if (IsForPeople(command, name)) return;
    // python - <<PY
    if (name.empty() && !command.words.empty() && command.words[0].text.starts_with("python")) {
      name = "program.py";
    }
    for (const HereDocument& one : command.documents) {
      const std::string own = out_.NewScope(scope_, /*command=*/true);
      ReadAny(one.text, name, {one.line, own, at_.depth + 1}, &out_);
    }
  }

  // Text that is printed, or written to notes.
  static bool IsForPeople(const ShellCommand& command, const std::string& target) {
    const std::string lower = ToLower(target);
    if (lower.ends_with(".txt") || lower.ends_with(".md") || lower.ends_with(".log")) return true;
    if (!target.empty() && target != "2") return target.starts_with("/dev/");
    return command.words.size() == 1 && command.words[0].text == "cat";
  }

  // What a script sets and never exports reaches no program.
  void NotExported() {
    if (all_exported_) return;
    for (const auto& [name, line] : plain_) {
      const Knob* knob = Catalogue::BuiltIn().Find(name);
      if (knob == nullptr || !knob->exists) continue;
      if (exported_.count(name) > 0 || out_.Expanded(name)) continue;
      out_.Complain("env.not-exported", Severity::kWarning, line,
                    name +
                        " is set and not exported: programs that the script starts do not get "
                        "it, unless it was exported before",
                    "Write export " + name + "=...");
    }
  }

  const Nested at_;
  Collector& out_;
  std::string scope_;
  std::vector<Block> blocks_;
  bool all_exported_ = false;
  std::set<std::string> exported_;
  std::map<std::string, size_t> plain_;
};

}  // namespace

void ReadShell(std::string_view text, const Nested& at, Collector* out) {
  if (at.depth < kDeepest) ShellReader(at, out).Run(text);
}

}  // namespace diapason::knobs
