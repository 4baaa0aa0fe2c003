#include <algorithm>

#include "base/text.h"
#include "knobs/files/collector.h"
#include "knobs/files/shell_lexer.h"
#include "knobs/files/shell_words.h"

namespace diapason::knobs {
namespace {

struct Instruction {
  std::string word;  // in capitals: "ENV"
  std::string rest;  // with its line feeds, so that lines can be counted
  size_t line = 1;
};

std::string Capitals(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return upper;
}

// Instructions with their continued lines. Comments between continued lines do not count.
std::vector<Instruction> Instructions(std::string_view text, size_t line) {
  std::vector<Instruction> all;
  bool goes_on = false;
  for (std::string_view one : Split(text, '\n')) {
    const std::string_view trimmed = Trim(one);
    if (trimmed.starts_with('#') || (goes_on && trimmed.empty())) {
      if (goes_on) all.back().rest += "\\\n";
    } else if (goes_on) {
      all.back().rest += std::string(one) + "\n";
      goes_on = trimmed.ends_with('\\');
    } else if (!trimmed.empty()) {
      const size_t end = std::min(trimmed.find_first_of(" \t"), trimmed.size());
      all.push_back(
          {Capitals(trimmed.substr(0, end)), std::string(trimmed.substr(end)) + "\n", line});
      goes_on = trimmed.ends_with('\\');
    }
    ++line;
  }
  return all;
}

void ReadEnv(const Instruction& one, const std::string& scope, Collector* out) {
  const ShellText split = SplitShell(one.rest, one.line);
  if (split.commands.empty() || split.commands[0].words.empty()) return;
  const std::vector<ShellWord>& words = split.commands[0].words;
  if (words[0].text.find('=') == std::string::npos) {
    // The old form: ENV NAME the rest is the value.
    std::vector<std::string> rest;
    bool expands = false;
    for (size_t i = 1; i < words.size(); ++i) {
      rest.push_back(words[i].text);
      expands = expands || words[i].expands;
    }
    return out->Set(words[0].text, Join(rest, " "), !expands, one.line, scope);
  }
  for (const ShellWord& word : words) SetFrom(word, scope, kDeepest, out);
}

}  // namespace

void ReadDockerfile(std::string_view text, const Nested& at, Collector* out) {
  std::string stage = at.scope;
  for (const Instruction& one : Instructions(text, at.line)) {
    if (one.word == "FROM") {
      stage = out->NewScope(at.scope);
    } else if (one.word == "ENV") {
      ReadEnv(one, stage, out);
    } else if (one.word == "RUN" || one.word == "CMD" || one.word == "ENTRYPOINT") {
      if (!HasAssignment(one.rest)) continue;
      const Nested inside = {one.line, out->NewScope(stage, /*command=*/true), at.depth + 1};
      if (Trim(one.rest).starts_with('[')) {
        ReadLiterals(one.rest, /*hash_comments=*/false, inside, out);
      } else {
        ReadShell(one.rest, inside, out);
      }
    }
  }
}

}  // namespace diapason::knobs
