#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace diapason::cli {

// What commands have declared, as plain data: --help, the man pages and the completion scripts are
// written from it, so that none of them can say something else than the parser does.

struct OptionInfo {
  std::vector<std::string> names;  // "-g", "--ranks"; empty for an argument by its place
  std::string value;               // "FILE", "N"; of an argument its name; "": a flag
  std::string text;                // what it does, in a sentence without a full stop
  std::string heading;             // the title it stands under; "": the common ones
  std::string fallback;            // the default; "": none, or the text tells
  std::string bounds;              // "1 to 4096"
  std::vector<std::string> words;  // values that can be completed
  std::vector<std::string> not_with;
  std::vector<std::string> needs;
  bool required = false;
  bool several = false;

  bool by_place() const { return names.empty(); }
  // "--ranks": the name to call it by; of an argument "FILE".
  const std::string& Name() const { return names.empty() ? value : names.back(); }
};

struct Example {
  std::string command;
  std::string text;  // what it does
};

struct ExitStatus {
  int status = 0;
  std::string text;
};

struct CommandInfo {
  std::vector<std::string> path;  // "diapason", "env", "check"
  std::string text;               // one line
  std::string heading;            // the title it stands under in the list of its parent
  std::vector<std::string> paragraphs;
  std::vector<OptionInfo> options;
  std::vector<std::pair<std::string, std::string>>
      heading_texts;  // title, what holds for all of it
  std::vector<Example> examples;
  std::vector<ExitStatus> exit_statuses;  // those that mean something special here
  std::vector<std::string> see_also;      // "env-check": other pages
  std::vector<std::pair<std::string, std::string>> environment;  // variable, what it does
  std::vector<std::shared_ptr<CommandInfo>> below;
  bool hidden = false;
  bool needs_command = false;  // one of those below
  bool takes_command = false;  // another program's, after "--"

  const std::string& name() const { return path.back(); }
  // The words one types: "diapason env check".
  std::string Words() const;
  // Those that people see.
  std::vector<const CommandInfo*> Shown() const;
  // nullptr where there is none of that name.
  const CommandInfo* Find(std::string_view name) const;
};

// Every command that people see, from the tool itself downwards.
std::vector<const CommandInfo*> AllCommands(const CommandInfo& tool);

// The text with what the parser knows besides: bounds, default, what it excludes.
std::string WholeText(const OptionInfo& option);
// The ways to call it, without "diapason env check" itself: "[OPTIONS] FILE...".
std::vector<std::string> UsageLines(const CommandInfo& command);
// Its options and arguments, with --help behind all others.
std::vector<OptionInfo> ShownOptions(const CommandInfo& command);
// The command of an example on lines of at most so many columns, which a shell puts together.
std::vector<std::string> ExampleLines(const Example& example, size_t columns);
// 0, 1, 2 and what the command adds.
std::vector<ExitStatus> AllExitStatuses(const CommandInfo& command);

// What `--help` prints, wrapped to so many columns.
std::string HelpText(const CommandInfo& command, int columns);

// A man page in the man(7) macros, and its name: "diapason-env-check".
std::string ManPage(const CommandInfo& tool, const CommandInfo& command, std::string_view version);
std::string ManPageName(const CommandInfo& command);

// Completion scripts of the tool for three shells.
std::string BashCompletion(const CommandInfo& tool);
std::string ZshCompletion(const CommandInfo& tool);
std::string FishCompletion(const CommandInfo& tool);

}  // namespace diapason::cli
