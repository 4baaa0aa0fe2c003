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

// What a command declares: its options, its text, what it does. This is the only header commands
// need; the parser behind it (CLI11) is known to command_line.cc alone, because every file that
// includes it takes seconds longer to compile. What is declared here is all there is: `--help`, the
// man pages and the completion scripts are written from it (command_info.h).
//
// One voice: a command's text is one line with a capital letter and without a full stop, an
// option's as well; the same thing has the same name everywhere (docs/formats/exit-status.md and
// tests/cli/voice_test.py hold what is common); every command has an example.

class Option {
 public:
  Option(CLI::Option* option, std::shared_ptr<CommandInfo> command, size_t index)
      : option_(option), command_(std::move(command)), index_(index) {}
  Option* Required();
  Option* Check(const ValueRule& rule);
  // The value it has now is the default that --help names.
  Option* ShowDefault();
  // The default in words, where the value does not tell it: "all GPUs".
  Option* Default(const std::string& text);
  // What stands for the value: FILE, DIR, SIZE, SIZES, TIME, N, NAME. Completion offers files for
  // what has FILE or STORE in it, and folders for DIR.
  Option* TypeName(const std::string& name);
  // Values that completion offers; others are not refused.
  Option* Words(std::vector<std::string> words);
  Option* Excludes(Option* other);
  Option* Needs(Option* other);
  Option* Expect(int least, int most);
  // One value at a time: `--x a --x b`, not `--x a b`.
  Option* OneEach();
  Option* Delimiter(char separator);
  bool Given() const;

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
  // Options under a title of their own, of which RequireOneOption may ask for one.
  CommandLine* AddGroup(const std::string& title, const std::string& text = "");
  // What is added from here on, options and commands, stands under this title.
  void Heading(const std::string& title);

  // Names as in "-n,--ranks"; without a dash it is an argument by its place.
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
  // A share between two bounds: "5%" or 0.05.
  Option* AddShare(const std::string& names, double& share, const std::string& text, double least,
                   double most);
  Option* AddFlag(const std::string& names, bool& value, const std::string& text);
  // A flag that one command of this tool gives another: not in help, man page or completion.
  void AddInternalFlag(const std::string& name, bool& value);
  // --json, -q,--quiet and -o,--output, which say the same everywhere.
  Option* AddJson(bool& value, const std::string& text = "Print JSON");
  Option* AddQuiet(bool& value, const std::string& text = "No progress on standard error");
  Option* AddOutput(std::string& value, const std::string& text);
  // One that was added before.
  Option* FindOption(const std::string& name);

  // Exactly one of its commands, or options, must be named.
  void RequireCommand();
  void AllowCommand();  // none, or one
  bool CommandGiven() const;
  void RequireOneOption();
  // It takes another command after "--", verbatim.
  void TakeCommand();
  // In a callback: that command; empty where there is none. Something before "--" that is no option
  // is a UsageError, which shows `usage` ("diapason launch -n 4 --").
  std::vector<std::string> CommandAfterDashes(const std::string& usage) const;
  // Not shown to people.
  void Hide();

  // More about it: a paragraph; a command to type (one line, at most 72 characters), and what it
  // does; an exit status that means something special; another page ("env-check"); a variable.
  void Describe(const std::string& paragraph);
  void Example(const std::string& command, const std::string& text = "");
  void ExitStatus(int status, const std::string& text);
  // 3 and 4, of commands that judge.
  void Judges();
  void SeeAlso(const std::vector<std::string>& pages);
  void Variable(const std::string& name, const std::string& text);

  // Runs when the command line has been read and names this command.
  void Callback(std::function<void()> function);

  // All that has been declared so far; it stays when the parser has gone.
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

// Thrown by a callback when what was asked for does not go together: exit status 2.
struct UsageError {
  std::string where;  // the option or command; may be empty
  std::string text;
};

// Reads a command line. `declare` adds the commands; returns an exit status where --help, --version
// or a mistake have been answered already, else -1.
int ReadCommandLine(int argc, char** argv, const std::string& text,
                    const std::function<void(CommandLine* app)>& declare);

}  // namespace diapason::cli
