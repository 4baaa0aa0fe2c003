#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace diapason::cli {

// What a command declares: its options, its text, what it does. This is the only header commands
// need; the parser behind it (CLI11) is known to command_line.cc alone, because every file that
// includes it takes seconds longer to compile.

// What a value must be. `wrong` gives the reason, or "" for a good one; `shown` stands in --help.
struct Rule {
  std::function<std::string(std::string& text)> wrong;
  std::string shown;
};
Rule Range(int low, int high);
Rule Range(int64_t low, int64_t high);
Rule Range(double low, double high);
Rule Positive();
Rule OneOf(const std::vector<std::string>& words);

class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option* Required();
  Option* Check(const Rule& rule);
  // The value it has now is the default that --help names.
  Option* ShowDefault();
  Option* TypeName(const std::string& name);
  Option* Excludes(Option* other);
  Option* Needs(Option* other);
  Option* Expect(int least, int most);
  // One value at a time: `--x a --x b`, not `--x a b`.
  Option* OneEach();
  Option* Delimiter(char separator);
  bool Given() const;

 private:
  CLI::Option* option_;
};

class CommandLine {
 public:
  explicit CommandLine(CLI::App* app);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  CommandLine* AddCommand(const std::string& name, const std::string& text);
  // Options under a title of their own.
  CommandLine* AddGroup(const std::string& title, const std::string& text = "");

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
  Option* AddFlag(const std::string& names, bool& value, const std::string& text);
  // One that was added before.
  Option* FindOption(const std::string& name);

  // Exactly one of its commands, or options, must be named.
  void RequireCommand();
  void AllowCommand();  // none, or one
  bool CommandGiven() const;
  void RequireOneOption();
  // It takes another command after "--", verbatim.
  void TakeCommand(const std::string& text);
  // In a callback: that command; empty where there is none. Something before "--" that is no option
  // is a UsageError, which shows `usage` ("diapason launch -n 4 --").
  std::vector<std::string> CommandAfterDashes(const std::string& usage) const;
  // Not shown to people.
  void Hide();
  void Footer(const std::string& text);
  // Runs when the command line has been read and names this command.
  void Callback(std::function<void()> function);

 private:
  Option* Keep(CLI::Option* option);

  CLI::App* app_;
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
int ReadCommandLine(int argc, char** argv, const std::string& text, const std::string& footer,
                    const std::function<void(CommandLine* app)>& declare);

}  // namespace diapason::cli
