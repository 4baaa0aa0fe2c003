#include <algorithm>
#include <map>

#include "base/text.h"
#include "cli/framework/completion.h"

namespace diapason::cli {

ValueKind KindOf(const OptionInfo& option) {
  if (option.value.empty()) return ValueKind::kNone;
  if (!option.words.empty()) return ValueKind::kWords;
  for (const char* file : {"FILE", "STORE", "JOURNAL"}) {
    if (option.value.find(file) != std::string::npos) return ValueKind::kFile;
  }
  return option.value == "DIR" ? ValueKind::kFolder : ValueKind::kOther;
}

std::string ShortText(const std::string& text) {
  const size_t end = std::min({text.find("; "), text.find(". "), text.find(" (")});
  return text.substr(0, end);
}

namespace {

std::string KindWord(const OptionInfo& option) {
  switch (KindOf(option)) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kFile:
      return "@file";
    case ValueKind::kFolder:
      return "@folder";
    case ValueKind::kWords:
      return Join(option.words, " ");
    case ValueKind::kOther:
      return "@other";
  }
  return "";
}

// The branches of a `case` that sets the kind of value for each option.
std::string KindCases(const CommandInfo& tool) {
  std::map<std::string, std::string> patterns;  // by kind
  for (const CommandInfo* command : AllCommands(tool)) {
    for (const OptionInfo& option : command->options) {
      const std::string kind = KindWord(option);
      if (kind.empty() || option.by_place()) continue;
      for (const std::string& name : option.names) {
        std::string& pattern = patterns[kind];
        pattern +=
            (pattern.empty() ? "" : " | \\\n      ") + ShellQuoted(command->Words() + " " + name);
      }
    }
  }
  std::string text;
  for (const auto& [kind, pattern] : patterns) {
    text += "    " + pattern + ")\n      kind=" + ShellQuoted(kind) + "\n      ;;\n";
  }
  return text;
}

// The branches of a `case` that sets what may follow each command.
std::string WordCases(const CommandInfo& tool) {
  std::string text;
  for (const CommandInfo* command : AllCommands(tool)) {
    std::vector<std::string> options;
    std::vector<std::string> words;
    std::string kind;
    for (const OptionInfo& option : command->options) {
      for (const std::string& name : option.names) options.push_back(name);
      if (option.by_place() && kind.empty()) kind = KindWord(option);
    }
    for (const CommandInfo* below : command->Shown()) words.push_back(below->name());
    text += "    " + ShellQuoted(command->Words()) + ")\n";
    text += "      options=" + ShellQuoted(Join(options, " ")) + "\n";
    text += "      words=" + ShellQuoted(Join(words, " ")) + "\n";
    text += "      kind=" + ShellQuoted(kind) + "\n      ;;\n";
  }
  return text;
}

}  // namespace

std::string BashCompletion(const CommandInfo& tool) {
  std::vector<std::string> paths;
  for (const CommandInfo* command : AllCommands(tool)) {
    if (command != &tool) paths.push_back(ShellQuoted(command->Words()));
  }
  return R"(# bash completion for diapason, written by `diapason completion bash`.
# Load it with: source <(diapason completion bash)

# Sets `kind` to what follows option $2 of command $1: words, @file, @folder, @other or nothing.
_diapason_kind() {
  kind=''
  case "$1 $2" in
)" + KindCases(tool) +
         R"(  esac
}

# Completes the last part of a list with commas.
_diapason_complete() {
  local before=''
  case $kind in
    @file | @folder)
      compopt -o filenames 2> /dev/null
      if [[ $kind == @file ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      else
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
      fi
      ;;
    @other | '')
      ;;
    *)
      if [[ $cur == *,* ]]; then
        before=${cur%,*},
      fi
      mapfile -t COMPREPLY < <(compgen -P "$before" -W "$kind" -- "${cur##*,}")
      ;;
  esac
}

_diapason() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
  local path=diapason options='' words='' kind='' word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == -- ]]; then
      # A program and its arguments.
      compopt -o filenames 2> /dev/null
      if ((i + 1 == COMP_CWORD)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$cur")
      else
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      fi
      return
    fi
    _diapason_kind "$path" "$word"
    if [[ -n $kind ]]; then
      # Its value is no command. --name=value comes as three words.
      if [[ ${COMP_WORDS[i + 1]} == '=' ]]; then
        ((i++))
      fi
      ((i++))
      continue
    fi
    case "$path $word" in
      )" +
         Join(paths, " | \\\n      ") +
         R"()
        path+=" $word"
        ;;
    esac
  done
  if [[ $cur == '=' ]]; then
    cur=''
  elif [[ $prev == '=' ]]; then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  _diapason_kind "$path" "$prev"
  if [[ -n $kind ]]; then
    _diapason_complete
    return
  fi
  case $path in
)" + WordCases(tool) +
         R"(  esac
  if [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
    return
  fi
  _diapason_complete
  if [[ -n $words ]]; then
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$words" -- "$cur")
  fi
}

complete -F _diapason diapason
)";
}

}  // namespace diapason::cli
