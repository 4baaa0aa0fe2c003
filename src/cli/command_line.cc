#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text.h"
#include "base/version.h"
#include "cli/command.h"

namespace diapason::cli {
namespace {

Rule From(const CLI::Validator& validator) {
  return {[validator](std::string& text) { return validator(text); }, validator.get_description()};
}

}  // namespace

Rule Range(int low, int high) { return From(CLI::Range(low, high)); }
Rule Range(int64_t low, int64_t high) { return From(CLI::Range(low, high)); }
Rule Range(double low, double high) { return From(CLI::Range(low, high)); }
Rule Positive() { return From(CLI::PositiveNumber); }
Rule OneOf(const std::vector<std::string>& words) { return From(CLI::IsMember(words)); }

Option* Option::Required() {
  option_->required();
  return this;
}
Option* Option::Check(const Rule& rule) {
  option_->check(CLI::Validator(rule.wrong, rule.shown));
  return this;
}
Option* Option::ShowDefault() {
  option_->capture_default_str();
  return this;
}
Option* Option::TypeName(const std::string& name) {
  option_->type_name(name);
  return this;
}
Option* Option::Excludes(Option* other) {
  option_->excludes(other->option_);
  return this;
}
Option* Option::Needs(Option* other) {
  option_->needs(other->option_);
  return this;
}
Option* Option::Expect(int least, int most) {
  option_->expected(least, most);
  return this;
}
Option* Option::OneEach() {
  option_->allow_extra_args(false);
  return this;
}
Option* Option::Delimiter(char separator) {
  option_->delimiter(separator);
  return this;
}
bool Option::Given() const { return option_->count() > 0; }

CommandLine::CommandLine(CLI::App* app) : app_(app) {}
CommandLine::~CommandLine() = default;

CommandLine* CommandLine::AddCommand(const std::string& name, const std::string& text) {
  below_.push_back(std::make_unique<CommandLine>(app_->add_subcommand(name, text)));
  return below_.back().get();
}

CommandLine* CommandLine::AddGroup(const std::string& title, const std::string& text) {
  below_.push_back(std::make_unique<CommandLine>(app_->add_option_group(title, text)));
  return below_.back().get();
}

Option* CommandLine::Keep(CLI::Option* option) {
  options_.push_back(std::make_unique<Option>(option));
  return options_.back().get();
}

Option* CommandLine::AddOption(const std::string& names, std::string& value,
                               const std::string& text) {
  return Keep(app_->add_option(names, value, text));
}
Option* CommandLine::AddOption(const std::string& names, int& value, const std::string& text) {
  return Keep(app_->add_option(names, value, text));
}
Option* CommandLine::AddOption(const std::string& names, int64_t& value, const std::string& text) {
  return Keep(app_->add_option(names, value, text));
}
Option* CommandLine::AddOption(const std::string& names, uint32_t& value, const std::string& text) {
  return Keep(app_->add_option(names, value, text));
}
Option* CommandLine::AddOption(const std::string& names, uint64_t& value, const std::string& text) {
  return Keep(app_->add_option(names, value, text));
}
Option* CommandLine::AddOption(const std::string& names, double& value, const std::string& text) {
  return Keep(app_->add_option(names, value, text));
}
Option* CommandLine::AddOption(const std::string& names, std::vector<std::string>& value,
                               const std::string& text) {
  return Keep(app_->add_option(names, value, text));
}
Option* CommandLine::AddOption(const std::string& names, std::vector<int>& value,
                               const std::string& text) {
  return Keep(app_->add_option(names, value, text));
}
Option* CommandLine::AddFlag(const std::string& names, bool& value, const std::string& text) {
  return Keep(app_->add_flag(names, value, text));
}
Option* CommandLine::FindOption(const std::string& name) { return Keep(app_->get_option(name)); }

void CommandLine::RequireCommand() { app_->require_subcommand(1); }
void CommandLine::AllowCommand() { app_->require_subcommand(0, 1); }
bool CommandLine::CommandGiven() const { return !app_->get_subcommands().empty(); }
void CommandLine::RequireOneOption() { app_->require_option(1); }

void CommandLine::TakeCommand(const std::string& text) {
  app_->add_option("command", program_, text)->type_name("");
  app_->prefix_command();
}

std::vector<std::string> CommandLine::CommandAfterDashes(const std::string& usage) const {
  // CLI11 keeps words it has no option for, and the "--" itself.
  const std::vector<std::string> rest = app_->remaining();
  const auto mark = std::find(rest.begin(), rest.end(), "--");
  if (mark == rest.end() && !program_.empty()) {
    throw UsageError{app_->get_name(), "put -- before the command: " + usage + " " + program_};
  }
  if (mark != rest.begin() && !rest.empty()) {
    throw UsageError{app_->get_name(), "'" + rest.front() + "' was not expected before --"};
  }
  if (program_.empty()) return {};
  std::vector<std::string> command = {program_};
  command.insert(command.end(), mark + 1, rest.end());
  return command;
}

void CommandLine::Hide() { app_->group(""); }
void CommandLine::Footer(const std::string& text) { app_->footer(text); }

void CommandLine::Callback(std::function<void()> function) {
  app_->callback([function = std::move(function)] {
    try {
      function();
    } catch (const UsageError& error) {
      const std::string text = error.where.empty() ? error.text : error.where + ": " + error.text;
      throw CLI::ValidationError(text, CLI::ExitCodes::ValidationError);
    }
  });
}

int ReadCommandLine(int argc, char** argv, const std::string& text, const std::string& footer,
                    const std::function<void(CommandLine* app)>& declare) {
  CLI::App app(text, "diapason");
  app.set_version_flag("--version", std::string("diapason ") + kVersion);
  app.require_subcommand(1);
  app.footer(footer);
  CommandLine line(&app);
  declare(&line);
  if (argc > 1 && argv[1][0] != '-') {
    std::vector<std::string> commands;
    bool known = false;
    for (const CLI::App* command : app.get_subcommands({})) {
      known = known || command->get_name() == argv[1];
      // Those without a group are not for people.
      if (!command->get_group().empty()) commands.push_back(command->get_name());
    }
    if (!known) {
      (void)Fail(Invalid(Format("unknown command '%s'", argv[1]) + Suggestion(argv[1], commands)));
      return kExitUsage;
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // --help and --version come this way too, with status 0.
    return app.exit(error) == 0 ? kExitFine : kExitUsage;
  }
  return -1;
}

}  // namespace diapason::cli
