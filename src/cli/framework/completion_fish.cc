#include "base/text.h"
#include "cli/framework/completion.h"

namespace diapason::cli {
namespace {

// In single quotes fish interprets only two escapes.
std::string FishQuoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string Value(const OptionInfo& option) {
  switch (KindOf(option)) {
    case ValueKind::kNone:
      break;
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kFolder:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kWords:
      return " -x -a " + FishQuoted(Join(option.words, " "));
    case ValueKind::kOther:
      return " -x";
  }
  return "";
}

// The words of a command without the tool's name, which __diapason_at compares.
std::string Below(const CommandInfo& command) {
  return Join({command.path.begin() + 1, command.path.end()}, " ");
}

std::string Lines(const CommandInfo& command) {
  const std::string start =
      "complete -c diapason -n " + FishQuoted("__diapason_at " + ShellQuoted(Below(command)));
  std::string text;
  for (const CommandInfo* below : command.Shown()) {
    text += start + " -a " + below->name() + " -d " + FishQuoted(ShortText(below->text)) + "\n";
  }
  for (const OptionInfo& option : command.options) {
    if (option.by_place()) {
      const std::string value = Value(option);
      if (value == " -r -F") text += start + " -F\n";
      if (value.starts_with(" -x -a")) text += start + " " + value.substr(4) + "\n";
      continue;
    }
    std::string names;
    for (const std::string& name : option.names) {
      names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    text += start + names + Value(option) + " -d " + FishQuoted(ShortText(option.text)) + "\n";
  }
  if (command.takes_command || command.may_take_command) {
    text += "complete -c diapason -n " +
            FishQuoted("__diapason_program " + ShellQuoted(Below(command))) +
            " -x -a '(__fish_complete_command)'\n";
  }
  return text;
}

}  // namespace

std::string FishCompletion(const CommandInfo& tool) {
  std::vector<std::string> paths;
  for (const CommandInfo* command : AllCommands(tool)) {
    if (command != &tool) paths.push_back(FishQuoted(Below(*command)));
  }
  std::string text = R"(# fish completion for diapason, written by `diapason completion fish`.
# Load it with: diapason completion fish | source

# The commands named so far: "env check".
function __diapason_path
    set -l known )" + Join(paths, " ") +
                     R"(
    set -l words (commandline -opc)
    set -l path
    for word in $words[2..-1]
        test "$word" = --; and break
        set -l longer (string join -- ' ' $path $word)
        contains -- "$longer" $known; and set path "$longer"
    end
    echo "$path"
end

function __diapason_at
    set -l path (__diapason_path)
    not contains -- -- (commandline -opc); and test "$path" = "$argv[1]"
end

function __diapason_program
    set -l path (__diapason_path)
    contains -- -- (commandline -opc); and test "$path" = "$argv[1]"
end

complete -c diapason -f
)";
  for (const CommandInfo* command : AllCommands(tool)) text += Lines(*command);
  return text;
}

}  // namespace diapason::cli
