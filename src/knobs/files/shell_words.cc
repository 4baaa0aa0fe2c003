#include "knobs/files/shell_words.h"

#include <algorithm>

#include "base/text.h"

namespace diapason::knobs {
namespace {

// The literal of "${X:-literal}", "${X-literal}" and "${X:=literal}".
std::optional<std::string> LiteralDefault(const std::string& text) {
  if (!text.starts_with("${") || !text.ends_with('}')) return std::nullopt;
  const std::string inside = text.substr(2, text.size() - 3);
  size_t end = 0;
  while (end < inside.size() && IsIdentifier(inside.substr(0, end + 1))) ++end;
  if (end == 0 || end >= inside.size()) return std::nullopt;
  if (inside[end] == ':') ++end;
  if (end >= inside.size() || (inside[end] != '-' && inside[end] != '=')) return std::nullopt;
  std::string value = inside.substr(end + 1);
  if (value.size() > 1 && (value.front() == '"' || value.front() == '\'') &&
      value.back() == value.front()) {
    value = value.substr(1, value.size() - 2);
  }
  // "${X:-}" hands on what there is.
  if (value.empty() || value.find_first_of("$`{}") != std::string::npos) return std::nullopt;
  return value;
}

NameAndValue Pair(const std::string& name, const std::string& value, bool expands) {
  if (!expands) return {name, value, !IsTemplate(value)};
  if (const std::optional<std::string> literal = LiteralDefault(value))
    return {name, *literal, true};
  return {name, value, false};
}

// The list of --export and of qsub's -v: "ALL,A=1,B='x,y'". A part without '=' hands A on.
void ExportList(const std::string& list, const ShellWord& word, const std::string& scope,
                Collector* out) {
  std::string part;
  char quote = '\0';
  for (size_t at = 0; at <= list.size(); ++at) {
    const char c = at < list.size() ? list[at] : ',';
    if (at < list.size() && quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else {
        part += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == ',') {
      const size_t equals = part.find('=');
      const std::string name = part.substr(0, equals);
      if (equals == std::string::npos) {
        out->Pass(name, word.line, scope);
      } else {
        const std::string value = part.substr(equals + 1);
        const NameAndValue pair = Pair(name, value, word.expands && IsTemplate(value));
        out->Set(pair.name, pair.value, pair.known, word.line, scope);
      }
      part.clear();
    } else {
      part += c;
    }
  }
}

// "--export=LIST" and "--export LIST". True if the word was that option; *i is then at its end.
bool Exported(const std::vector<ShellWord>& words, size_t* i, const std::string& scope,
              Collector* out) {
  const std::string& text = words[*i].text;
  if (text.starts_with("--export=")) {
    ExportList(text.substr(9), words[*i], scope, out);
    return true;
  }
  const bool next = *i + 1 < words.size() && words[*i + 1].text.find('=') != std::string::npos;
  if (!next || (text != "--export" && text != "-v")) return false;
  // "-v" has other meanings: only a list of assignments is one.
  const std::string& list = words[*i + 1].text;
  if (text == "-v" && !IsIdentifier(list.substr(0, list.find('=')))) return false;
  ++*i;
  ExportList(list, words[*i], scope, out);
  return true;
}

// Without "--env=", "-e" and the like in front.
std::string WithoutOption(const std::string& text) {
  if (!text.starts_with('-')) return text;
  for (const char* glued : {"-e", "-x", "-E"}) {
    if (text.starts_with(glued) && text.size() > 2 && text[2] >= 'A' && text[2] <= 'Z') {
      return text.substr(2);
    }
  }
  const size_t equals = text.find('=');
  const std::string option = text.substr(0, equals);
  if (equals == std::string::npos || option.find("env") == std::string::npos) return "";
  return text.substr(equals + 1);
}

// A command in quotes: "export A=1; program", "A=1 program". Sentences begin with a capital.
bool LooksLikeCommand(const std::string& text) {
  const std::string_view trimmed = Trim(text);
  if (trimmed.empty() || !HasAssignment(trimmed)) return false;
  const std::string_view first = trimmed.substr(0, trimmed.find_first_of(" \t\n"));
  const bool assigns = first.find('=') != std::string_view::npos;
  const bool blank = trimmed.find_first_of(" \t\n;") != std::string_view::npos;
  const char c = trimmed[0];
  return blank && (assigns || c == '-' || c == '/' || c == '.' || c == '#' || c == '{' ||
                   c == '$' || c == '(' || (c >= 'a' && c <= 'z'));
}

}  // namespace

std::optional<NameAndValue> NamedValue(const ShellWord& word) {
  size_t equals = word.text.find('=');
  if (equals == std::string::npos || equals == 0) return std::nullopt;
  const size_t end = word.text[equals - 1] == '+' ? equals - 1 : equals;
  std::string name = word.text.substr(0, end);
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  if (!IsIdentifier(name)) return std::nullopt;
  NameAndValue pair = Pair(name, word.text.substr(equals + 1), word.expands);
  if (end != equals) pair.known = false;  // "A+=x" appends
  return pair;
}

void SetFrom(const ShellWord& word, const std::string& scope, int depth, Collector* out) {
  const std::optional<NameAndValue> pair = NamedValue(word);
  if (!pair) return;
  // NCCL_OPTS="-x NCCL_DEBUG=INFO" is a script's own variable with arguments in it.
  const bool arguments = Catalogue::BuiltIn().Find(pair->name) == nullptr && word.quoted &&
                         LooksLikeCommand(pair->value);
  if (CountsInFiles(pair->name) && !arguments) {
    return out->Set(pair->name, pair->value, pair->known, word.line, scope);
  }
  if (word.quoted && depth + 1 < kDeepest && LooksLikeCommand(pair->value)) {
    ReadShell(pair->value, {word.line, out->NewScope(scope, true), depth + 1}, out);
  }
}

void DefaultOf(const ShellWord& word, const std::string& scope, Collector* out) {
  const std::string& text = word.text;
  const size_t equals = text.find('=');
  if (!text.starts_with("${") || equals == std::string::npos || equals < 3) return;
  const bool colon = text[equals - 1] == ':';
  const std::string name = text.substr(2, equals - 2 - (colon ? 1 : 0));
  const std::optional<std::string> literal = LiteralDefault(text);
  std::string before;
  if (!IsIdentifier(name)) return;
  if (out->Holds(name, scope, &before) && !(colon && before.empty())) return;
  out->Set(name, literal.value_or(""), literal.has_value(), word.line, scope);
}

bool IgnoresWords(const std::string& program) {
  static const char* const kIgnored[] = {
      "[",    "[[",    "test",      "grep",  "egrep", "fgrep", "rg",   "sed",
      "awk",  "make",  "cmake",     "git",   "pip",   "pip3",  "echo", "printf",
      "read", "log",   "return",    "exit",  "tar",   "wget",  "curl", "apt-get",
      "apt",  "conda", "configure", "ninja", "meson", "which"};
  return std::any_of(std::begin(kIgnored), std::end(kIgnored),
                     [&program](const char* one) { return program == one; });
}

void ReadLauncherWords(const std::vector<ShellWord>& words, size_t first, const std::string& scope,
                       int depth, Collector* out) {
  for (size_t i = first; i < words.size(); ++i) {
    const ShellWord& word = words[i];
    if (Exported(words, &i, scope, out)) continue;
    const bool pair = word.text == "-genv" || word.text == "-env" || word.text == "--genv";
    if (pair && i + 2 < words.size()) {
      const ShellWord& value = words[i + 2];
      const NameAndValue read = Pair(words[i + 1].text, value.text, value.expands);
      out->Set(read.name, read.value, read.known, words[i + 1].line, scope);
      i += 2;
      continue;
    }
    const bool hands_on = word.text == "-x" || word.text == "-e" || word.text == "--env";
    if (hands_on && i + 1 < words.size() && IsIdentifier(words[i + 1].text)) {
      out->Pass(words[++i].text, word.line, scope);
      continue;
    }
    ShellWord bare = word;
    bare.text = WithoutOption(word.text);
    const std::optional<NameAndValue> named = NamedValue(bare);
    // bash -c "A=1 program"
    const bool command = word.quoted && named && named->value.find(' ') != std::string::npos &&
                         depth + 1 < kDeepest && i > 0 && words[i - 1].text == "-c";
    if (named && CountsInFiles(named->name) && !command) {
      out->Set(named->name, named->value, named->known, word.line, scope);
    } else if (word.quoted && depth + 1 < kDeepest && LooksLikeCommand(word.text)) {
      ReadShell(word.text, {word.line, out->NewScope(scope, true), depth + 1}, out);
    }
  }
}

}  // namespace diapason::knobs
