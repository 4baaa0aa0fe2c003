#include "base/text.h"
#include "cli/framework/completion.h"

namespace diapason::cli {
namespace {

std::string FunctionName(const CommandInfo& command) { return "_" + Join(command.path, "_"); }

// Brackets and colons have a special meaning in _arguments specifications.
std::string Tame(const std::string& text) {
  std::string tame;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') tame += '\\';
    tame += c;
  }
  return tame;
}

std::string Action(const OptionInfo& option) {
  switch (KindOf(option)) {
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kFolder:
      return "_files -/";
    case ValueKind::kWords:
      return "(" + Join(option.words, " ") + ")";
    case ValueKind::kNone:
    case ValueKind::kOther:
      break;
  }
  return " ";
}

std::string OptionSpec(const OptionInfo& option) {
  std::string tail = "[" + Tame(ShortText(option.text)) + "]";
  if (!option.value.empty()) tail += ":" + Tame(option.value) + ":" + Action(option);
  std::string specs;
  for (const std::string& name : option.names) {
    // A name excludes the option's other names, unless the option may be repeated.
    const std::string before = option.several            ? "*"
                               : option.names.size() > 1 ? "(" + Join(option.names, " ") + ")"
                                                         : "";
    specs += " \\\n    " + ShellQuoted(before + name + tail);
  }
  return specs;
}

std::string PlaceSpec(const OptionInfo& option, int place) {
  const std::string where = option.several ? "*" : Format("{}", place);
  const std::string tail = Tame(option.value) + ":" + Action(option);
  return " \\\n    " + ShellQuoted(where + (option.required || option.several ? ":" : "::") + tail);
}

std::string Function(const CommandInfo& command) {
  std::string text = FunctionName(command) + "() {\n";
  const std::vector<const CommandInfo*> below = command.Shown();
  if (!below.empty()) {
    text += "  local curcontext=\"$curcontext\" context state state_descr line\n";
    text += "  typeset -A opt_args\n  local -a commands\n";
  }
  if (command.may_take_command) {
    // Behind "--" stands another program, and before it are arguments of this one.
    text +=
        "  local at=${words[(i)--]}\n"
        "  if ((at < CURRENT)); then\n"
        "    words=(\"${(@)words[at + 1,-1]}\")\n"
        "    ((CURRENT -= at))\n"
        "    _normal\n"
        "    return\n"
        "  fi\n";
  }
  text += below.empty() ? "  _arguments -s" : "  _arguments -C -s";
  int place = 0;
  std::string words;
  for (const OptionInfo& option : command.options) {
    if (!option.by_place()) {
      text += OptionSpec(option);
    } else if (below.empty()) {
      text += PlaceSpec(option, ++place);
    } else {
      words = Join(option.words, " ");
    }
  }
  if (below.empty()) {
    if (command.takes_command) text += " \\\n    '*::command:_normal'";
    return text + "\n}\n\n";
  }
  text += " \\\n    '1: :->command' \\\n    '*:: :->rest'\n";
  text += "  case $state in\n    command)\n      commands=(\n";
  for (const CommandInfo* one : below) {
    text += "        " + ShellQuoted(one->name() + ":" + ShortText(one->text)) + "\n";
  }
  text += "      )\n      _describe -t commands 'command' commands\n";
  if (!words.empty()) text += "      compadd -- " + words + "\n";
  text += "      ;;\n    rest)\n      case $line[1] in\n";
  for (const CommandInfo* one : below) {
    text += "        " + one->name() + ") " + FunctionName(*one) + " ;;\n";
  }
  if (!words.empty()) text += "        *) compadd -- " + words + " ;;\n";
  return text + "      esac\n      ;;\n  esac\n}\n\n";
}

}  // namespace

std::string ZshCompletion(const CommandInfo& tool) {
  std::string text =
      "#compdef diapason\n"
      "# zsh completion for diapason, written by `diapason completion zsh`.\n"
      "# Load it with: source <(diapason completion zsh), or put it into a folder of $fpath as "
      "_diapason.\n\n";
  for (const CommandInfo* command : AllCommands(tool)) text += Function(*command);
  return text +
         "if [[ $funcstack[1] == _diapason ]]; then\n"
         "  _diapason \"$@\"\n"
         "else\n"
         "  compdef _diapason diapason\n"
         "fi\n";
}

}  // namespace diapason::cli
