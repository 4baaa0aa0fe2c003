#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/framework/command_info.h"
#include "cli/framework/rules.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace diapason::cli {

// The declarations of a command: its options, its help text, its callback. This is the only header
// commands need; CLI11 is included by command_line.cc alone, because it adds seconds to the compile
// time of every file. `--help`, the man pages and the completion scripts are generated from these
// declarations (command_info.h).
//
// A CommandLine owns its Option objects and its subcommands; the pointers returned here are valid
// as long as ReadCommandLine runs. All calls are made on the main thread. A declaration cannot
// fail; invalid command lines are reported by ReadCommandLine.
//
// Style of help texts: a whole phrase in sentence case without a final full stop, for commands and
// options alike; an option has the same name and meaning in every command
// (docs/formats/exit-status.md and tests/cli/voice_test.py hold the common rules); every command
// has an example.

class Option {
 public:
  Option(CLI::Option* option, std::shared_ptr<CommandInfo> command, size_t index)
      : option_(option), command_(std::move(command)), index_(index) {}
  Option* Required();
  Option* Check(const ValueRule& rule);
  // Shows the current value of the variable as the default in --help.
  Option* ShowDefault();
  // Text shown as the default where the value itself does not tell: "all GPUs".
  Option* Default(const std::string& text);
  // Placeholder of the value: FILE, DIR, SIZE, SIZES, TIME, N, NAME. Completion offers files if the
  // placeholder contains FILE or STORE, and folders for DIR.
  Option* TypeName(const std::string& name);
  // Values that completion offers; other values are accepted as well.
  Option* Words(std::vector<std::string> words);
  // The same for words that take time to make: they are made for completion scripts alone.
  Option* WordsFrom(std::function<std::vector<std::string>()> make);
  Option* Excludes(Option* other);
  Option* Needs(Option* other);
  Option* Expect(int least, int most);
  // One value per occurrence: `--x a --x b`, not `--x a b`.
  Option* OneEach();
  Option* Delimiter(char separator);
  bool Given() const;
  const std::string& Name() const { return command_->options[index_].names.back(); }

 private:
  OptionInfo* info() { return &command_->options[index_]; }

  CLI::Option* option_;
  std::shared_ptr<CommandInfo> command_;
  size_t index_;
};

class CommandLine {
 public:
  CommandLine(CLI::App* app, std::shared_ptr<CommandInfo> info);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  CommandLine* AddCommand(const std::string& name, const std::string& text);
  // A group of options under a heading of its own; RequireOneOption requires one of them.
  CommandLine* AddGroup(const std::string& title, const std::string& text = "");
  // Options and commands added after this call are listed under this heading.
  void Heading(const std::string& title);

  // Names as in "-n,--ranks"; a name without a dash declares a positional argument.
  Option* AddOption(const std::string& names, std::string& value, const std::string& text);
  Option* AddOption(const std::string& names, int& value, const std::string& text);
  Option* AddOption(const std::string& names, int64_t& value, const std::string& text);
  Option* AddOption(const std::string& names, uint32_t& value, const std::string& text);
  Option* AddOption(const std::string& names, uint64_t& value, const std::string& text);
  Option* AddOption(const std::string& names, double& value, const std::string& text);
  Option* AddOption(const std::string& names, std::vector<std::string>& value,
                    const std::string& text);
  Option* AddOption(const std::string& names, std::vector<int>& value, const std::string& text);
  // A time between two bounds, in seconds: "90s", "2m", "500ms", or plain seconds.
  Option* AddTime(const std::string& names, double& seconds, const std::string& text, double least,
                  double most);
  // A share (fraction) between two bounds: "5%" or 0.05.
  Option* AddShare(const std::string& names, double& share, const std::string& text, double least,
                   double most);
  Option* AddFlag(const std::string& names, bool& value, const std::string& text);
  // A flag that one command of this tool gives another: not in help, man page or completion.
  void AddInternalFlag(const std::string& name, bool& value);
  // --json, -q,--quiet and -o,--output, which say the same everywhere.
  Option* AddJson(bool& value, const std::string& text = "Print JSON");
  Option* AddQuiet(bool& value,
                   const std::string& text = "Do not print progress on standard error");
  Option* AddOutput(std::string& value, const std::string& text);
  // --format: how tables are printed, and that only tables are. Not beside --json, if that has
  // been added before.
  Option* AddFormat();
  // Returns an option that was added before.
  Option* FindOption(const std::string& name);

  // Exactly one of the subcommands, or of the options, is required.
  void RequireCommand();
  void AllowCommand();  // at most one subcommand
  bool CommandGiven() const;
  void RequireOneOption();
  // The command takes the command line of another program after "--", verbatim.
  void TakeCommand();
  // The same for a command that has arguments of its own before "--", and needs no other program.
  void MayTakeCommand();
  // For use in a callback: what stands after "--" then.
  const std::vector<std::string>& ProgramGiven() const { return info_->program; }
  // For use in a callback: the command after "--", or an empty list. An argument before "--" that
  // is not an option is a UsageError, which shows `usage` ("diapason launch -n 4 --").
  std::vector<std::string> CommandAfterDashes(const std::string& usage) const;
  // Leaves the command out of help, man pages and completion.
  void Hide();

  // Further documentation: a paragraph; an example command (one line, at most 72 characters) and
  // what it does; an exit status specific to this command; a related page ("env-check"); an
  // environment variable.
  void Describe(const std::string& paragraph);
  void Example(const std::string& command, const std::string& text = "");
  void ExitStatus(int status, const std::string& text);
  // Adds the exit statuses 3 and 4 of commands that report findings.
  void Judges();
  void SeeAlso(const std::vector<std::string>& pages);
  void Variable(const std::string& name, const std::string& text);

  // Called after the command line has been parsed, if it names this command.
  void Callback(std::function<void()> function);

  // Everything declared so far. It outlives the parser.
  const std::shared_ptr<CommandInfo>& info() const { return info_; }

 private:
  friend class Reader;
  Option* Keep(CLI::Option* option, const std::string& names, const std::string& value,
               const std::string& text);

  CLI::App* app_;
  std::shared_ptr<CommandInfo> info_;
  std::string heading_;
  std::string program_;  // the first word after "--"
  std::vector<std::unique_ptr<CommandLine>> below_;
  std::vector<std::unique_ptr<Option>> options_;
};

// Thrown by a callback when options contradict each other: exit status 2.
struct UsageError {
  std::string where;  // the option or command; may be empty
  std::string text;
};

// Parses a command line. `declare` adds the commands. Returns an exit status if --help, --version
// or an error has been handled already, else -1.
int ReadCommandLine(int argc, char** argv, const std::string& text,
                    const std::function<void(CommandLine* app)>& declare);

}  // namespace diapason::cli
