#include "base/text.h"
#include "knobs/files/collector.h"
#include "knobs/files/shell_lexer.h"
#include "knobs/files/shell_words.h"

namespace diapason::knobs {
namespace {

// Without the quotes around it, or without a comment behind it.
std::string Bare(std::string_view value) {
  value = Trim(value);
  if (value.size() > 1 && (value[0] == '"' || value[0] == '\'')) {
    const size_t end = value.find(value[0], 1);
    if (end != std::string_view::npos) {
      const std::string_view rest = Trim(value.substr(end + 1));
      if (rest.empty() || rest[0] == '#' || rest[0] == ';' || rest[0] == ',') {
        return std::string(value.substr(1, end - 1));
      }
    }
  }
  const size_t comment = value.find(" #");
  return std::string(Trim(value.substr(0, comment)));
}

}  // namespace

void ReadList(std::string_view text, const Nested& at, Collector* out) {
  size_t number = at.line;
  std::string section = at.scope;
  for (const std::string_view line : Split(text, '\n')) {
    std::string_view trimmed = Trim(line);
    const size_t here = number++;
    if (trimmed.empty() || trimmed[0] == '#' || trimmed[0] == ';') continue;
    if (trimmed[0] == '[') {
      section = out->NewScope(at.scope);
      continue;
    }
    if (trimmed.starts_with("export ")) trimmed = Trim(trimmed.substr(7));
    // systemd: Environment="A=1" B=2
    if (trimmed.starts_with("Environment=")) {
      const ShellText split = SplitShell(trimmed.substr(12), here);
      if (split.commands.empty()) continue;
      for (const ShellWord& word : split.commands[0].words) SetFrom(word, section, kDeepest, out);
      continue;
    }
    const size_t equals = trimmed.find('=');
    if (equals == std::string_view::npos) {
      if (CountsInFiles(trimmed)) out->Pass(std::string(trimmed), here, section);
      continue;
    }
    std::string name(Trim(trimmed.substr(0, equals)));
    if (name.size() > 1 && name.front() == '"' && name.back() == '"') {
      name = name.substr(1, name.size() - 2);
    }
    const std::string value = Bare(trimmed.substr(equals + 1));
    if (CountsInFiles(name)) {
      out->Set(name, value, !IsTemplate(value), here, section);
    } else if (HasAssignment(value)) {
      ReadShell(value, {here, out->NewScope(section, /*command=*/true), at.depth + 1}, out);
    }
  }
}

}  // namespace diapason::knobs
