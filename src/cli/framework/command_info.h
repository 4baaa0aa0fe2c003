#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace diapason::cli {

// The declarations of all commands as plain data. --help, the man pages and the completion scripts
// are generated from it, so that they always match the parser.

struct OptionInfo {
  std::vector<std::string> names;  // "-g", "--ranks"; empty for a positional argument
  std::string value;  // placeholder: "FILE", "N"; the name of a positional argument; "" for a flag
  std::string text;   // help text: one phrase without a full stop
  std::string heading;             // heading in the help text; "" for the common options
  std::string fallback;            // default value as shown; "" if there is none or `text` names it
  std::string bounds;              // "1 to 4096"
  std::vector<std::string> words;  // values offered by completion
  std::function<std::vector<std::string>()> make_words;  // the same, made by FillWords
  std::vector<std::string> not_with;
  std::vector<std::string> needs;
  bool required = false;
  bool several = false;

  bool by_place() const { return names.empty(); }
  // "--ranks": the name used in messages; the placeholder for a positional argument.
  const std::string& Name() const { return names.empty() ? value : names.back(); }
};

struct Example {
  std::string command;
  std::string text;  // what the command does
};

struct ExitStatus {
  int status = 0;
  std::string text;
};

struct CommandInfo {
  std::vector<std::string> path;  // "diapason", "env", "check"
  std::string text;               // one line
  std::string heading;            // heading in the command list of the parent
  std::vector<std::string> paragraphs;
  std::vector<OptionInfo> options;
  std::vector<std::pair<std::string, std::string>>
      heading_texts;  // heading, text that applies to all its options
  std::vector<Example> examples;
  std::vector<ExitStatus> exit_statuses;  // only those specific to this command
  std::vector<std::string> see_also;      // "env-check": related pages
  std::vector<std::pair<std::string, std::string>> environment;  // variable, its effect
  std::vector<std::shared_ptr<CommandInfo>> below;
  bool hidden = false;
  bool needs_command = false;        // one of `below` must be named
  bool takes_command = false;        // a program and its arguments, after "--"
  bool may_take_command = false;     // the same beside arguments of its own; never both
  std::vector<std::string> program;  // may_take_command: what stands after "--"

  const std::string& name() const { return path.back(); }
  // The words to type: "diapason env check".
  std::string Words() const;
  // The subcommands that are not hidden.
  std::vector<const CommandInfo*> Shown() const;
  // nullptr if there is no subcommand of that name.
  const CommandInfo* Find(std::string_view name) const;
};

// Every command that is not hidden, starting with the tool itself.
std::vector<const CommandInfo*> AllCommands(const CommandInfo& tool);

// The help text followed by what the parser knows: bounds, default, exclusions.
std::string WholeText(const OptionInfo& option);
// The usage lines without the words of the command itself: "[OPTIONS] FILE...".
std::vector<std::string> UsageLines(const CommandInfo& command);
// The options and arguments of a command, --help last.
std::vector<OptionInfo> ShownOptions(const CommandInfo& command);
// The command of an example, split with backslashes into lines of at most `columns` columns.
std::vector<std::string> ExampleLines(const Example& example, size_t columns);
// 0, 1, 2 and the statuses that the command adds.
std::vector<ExitStatus> AllExitStatuses(const CommandInfo& command);

// The output of `--help`, wrapped to `columns` columns.
std::string HelpText(const CommandInfo& command, int columns);

// A man page in the man(7) macros, and its name: "diapason-env-check".
std::string ManPage(const CommandInfo& tool, const CommandInfo& command, std::string_view version);
std::string ManPageName(const CommandInfo& command);

// Makes the words of options that have `make_words`, of all commands. Completion scripts need it.
void FillWords(CommandInfo* tool);

// Completion scripts for the three shells.
std::string BashCompletion(const CommandInfo& tool);
std::string ZshCompletion(const CommandInfo& tool);
std::string FishCompletion(const CommandInfo& tool);

}  // namespace diapason::cli
