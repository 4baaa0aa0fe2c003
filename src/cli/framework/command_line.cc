#include "cli/framework/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "cli/framework/command.h"
#include "cli/framework/mistakes.h"
#include "cli/framework/output.h"

namespace diapason::cli {
namespace {

// Placeholders by option name, used where the command sets none, so that an option looks the same
// in every command.
constexpr std::pair<const char*, const char*> kSameEverywhere[] = {
    {"--output", "FILE"},       {"--store", "STORE"},   {"--sizes", "SIZES"},
    {"--size", "SIZE"},         {"--library", "NAME"},  {"--library-version", "VERSION"},
    {"--library-file", "FILE"}, {"--policy", "FILE"},   {"--model", "FILE"},
    {"--collective", "NAME"},   {"--backend", "NAME"},  {"--margin", "SHARE"},
    {"--datatype", "NAME"},     {"--hostfile", "FILE"}, {"--launcher", "NAME"},
    {"--bucket-bytes", "SIZE"}, {"--compute", "TIME"},  {"--objective", "WORD"},
    {"--budget", "TIME"},       {"--limit", "TIME"},
};

CLI::Validator Validator(const ValueRule& rule) { return CLI::Validator(rule.wrong, ""); }

// Whether the placeholder stands for a file, a store or a folder.
bool NamesFile(const OptionInfo& option) {
  return option.value.find("FILE") != std::string::npos ||
         option.value.find("STORE") != std::string::npos ||
         option.value.find("DIR") != std::string::npos;
}

// The placeholder may be set after the option has been added: check it when there is a value.
ValueRule NotWithoutName(const std::shared_ptr<CommandInfo>& command) {
  const auto wrong = [command, index = command->options.size()](std::string& text) -> std::string {
    return text.empty() && NamesFile(command->options[index]) ? "the name is empty" : "";
  };
  return {wrong, ""};
}

// "-" means standard output where that is the default.
constexpr char kStandardOutput[] = "standard output";
ValueRule NoDash(const std::shared_ptr<CommandInfo>& command) {
  const auto wrong = [command, index = command->options.size()](std::string& text) -> std::string {
    if (text != "-" || command->options[index].fallback == kStandardOutput) return "";
    return "give a file name; /dev/stdout is standard output";
  };
  return {wrong, ""};
}

}  // namespace

Option* Option::Required() {
  option_->required();
  info()->required = true;
  return this;
}
Option* Option::Check(const ValueRule& rule) {
  option_->check(Validator(rule));
  if (!rule.shown.empty()) info()->bounds = rule.shown;
  if (!rule.words.empty()) Words(rule.words);
  return this;
}
Option* Option::ShowDefault() {
  option_->capture_default_str();
  std::string text = option_->get_default_str();
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  return Default(text);
}
Option* Option::Default(const std::string& text) {
  info()->fallback = text;
  return this;
}
Option* Option::TypeName(const std::string& name) {
  info()->value = name;
  return this;
}
Option* Option::Words(std::vector<std::string> words) {
  info()->words = std::move(words);
  return this;
}
Option* Option::WordsFrom(std::function<std::vector<std::string>()> make) {
  info()->make_words = std::move(make);
  return this;
}
Option* Option::Excludes(Option* other) {
  option_->excludes(other->option_);
  info()->not_with.push_back(other->info()->Name());
  return this;
}
Option* Option::Needs(Option* other) {
  option_->needs(other->option_);
  info()->needs.push_back(other->info()->Name());
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

CommandLine::CommandLine(CLI::App* app, std::shared_ptr<CommandInfo> info)
    : app_(app), info_(std::move(info)) {}
CommandLine::~CommandLine() = default;

CommandLine* CommandLine::AddCommand(const std::string& name, const std::string& text) {
  auto info = std::make_shared<CommandInfo>();
  info->path = info_->path;
  info->path.push_back(name);
  info->text = text;
  info->heading = heading_;
  OptionInfo help;
  help.names = {"-h", "--help"};
  help.text = "Print this text and exit";
  info->options.push_back(help);
  info_->below.push_back(info);
  below_.push_back(std::make_unique<CommandLine>(app_->add_subcommand(name, text), info));
  return below_.back().get();
}

CommandLine* CommandLine::AddGroup(const std::string& title, const std::string& text) {
  below_.push_back(std::make_unique<CommandLine>(app_->add_option_group(title, text), info_));
  below_.back()->heading_ = title;
  if (!text.empty()) info_->heading_texts.emplace_back(title, text);
  return below_.back().get();
}

void CommandLine::Heading(const std::string& title) { heading_ = title; }

Option* CommandLine::Keep(CLI::Option* option, const std::string& names, const std::string& value,
                          const std::string& text) {
  OptionInfo info;
  info.text = text;
  info.heading = heading_;
  info.value = value;
  for (const std::string_view name : Split(names, ',')) {
    if (name.starts_with('-')) {
      info.names.emplace_back(name);
    } else {
      info.value = name;
    }
  }
  if (info.value == "TEXT") {
    const auto same = std::find_if(std::begin(kSameEverywhere), std::end(kSameEverywhere),
                                   [&](const auto& one) { return info.Name() == one.first; });
    if (same != std::end(kSameEverywhere)) info.value = same->second;
  }
  info_->options.push_back(info);
  options_.push_back(std::make_unique<Option>(option, info_, info_->options.size() - 1));
  return options_.back().get();
}

Option* CommandLine::AddOption(const std::string& names, std::string& value,
                               const std::string& text) {
  CLI::Option* const option = app_->add_option(names, value, text);
  option->check(Validator(NotWithoutName(info_)));
  return Keep(option, names, "TEXT", text);
}
Option* CommandLine::AddOption(const std::string& names, int& value, const std::string& text) {
  return Keep(app_->add_option(names, value, text)->check(Validator(WholeNumber(true))), names, "N",
              text);
}
Option* CommandLine::AddOption(const std::string& names, int64_t& value, const std::string& text) {
  return Keep(app_->add_option(names, value, text)->check(Validator(WholeNumber(true))), names, "N",
              text);
}
Option* CommandLine::AddOption(const std::string& names, uint32_t& value, const std::string& text) {
  return Keep(app_->add_option(names, value, text)->check(Validator(WholeNumber(false))), names,
              "N", text);
}
Option* CommandLine::AddOption(const std::string& names, uint64_t& value, const std::string& text) {
  return Keep(app_->add_option(names, value, text)->check(Validator(WholeNumber(false))), names,
              "N", text);
}
Option* CommandLine::AddOption(const std::string& names, double& value, const std::string& text) {
  return Keep(app_->add_option(names, value, text)->check(Validator(AnyNumber())), names, "X",
              text);
}
Option* CommandLine::AddOption(const std::string& names, std::vector<std::string>& value,
                               const std::string& text) {
  CLI::Option* const added = app_->add_option(names, value, text);
  added->check(Validator(NotWithoutName(info_)));
  Option* option = Keep(added, names, "TEXT", text);
  info_->options.back().several = true;
  return option;
}
Option* CommandLine::AddOption(const std::string& names, std::vector<int>& value,
                               const std::string& text) {
  Option* option = Keep(app_->add_option(names, value, text)->check(Validator(WholeNumber(true))),
                        names, "N", text);
  info_->options.back().several = true;
  return option;
}
Option* CommandLine::AddTime(const std::string& names, double& seconds, const std::string& text,
                             double least, double most) {
  const auto take = [&seconds](const CLI::results_t& given) {
    return !given.empty() && ReadTime(given.back(), &seconds);
  };
  Option* option = Keep(app_->add_option(names, take, text), names, "TIME", text)
                       ->Check(TimeBetween(least, most));
  return seconds > 0 ? option->Default(TimeText(seconds)) : option;
}
Option* CommandLine::AddShare(const std::string& names, double& share, const std::string& text,
                              double least, double most) {
  const auto take = [&share](const CLI::results_t& given) {
    return !given.empty() && ReadShare(given.back(), &share);
  };
  return Keep(app_->add_option(names, take, text), names, "SHARE", text)
      ->Check(ShareBetween(least, most))
      ->Default(Format("{:g}%", 100 * share));
}
Option* CommandLine::AddFlag(const std::string& names, bool& value, const std::string& text) {
  return Keep(app_->add_flag(names, value, text), names, "", text);
}
void CommandLine::AddInternalFlag(const std::string& name, bool& value) {
  app_->add_flag(name, value)->group("");
}
Option* CommandLine::AddJson(bool& value, const std::string& text) {
  return AddFlag("--json", value, text);
}
Option* CommandLine::AddQuiet(bool& value, const std::string& text) {
  return AddFlag("-q,--quiet", value, text);
}
Option* CommandLine::AddOutput(std::string& value, const std::string& text) {
  const char* const names = "-o,--output";
  const auto take = [&value](const CLI::results_t& given) {
    value = given.back() == "-" ? "" : given.back();
    return true;
  };
  CLI::Option* const option = app_->add_option(names, take, text);
  option->check(Validator(NotWithoutName(info_)))->check(Validator(NoDash(info_)));
  return Keep(option, names, "FILE", text);
}

Option* CommandLine::AddFormat() {
  Option* const format =
      AddOption("--format", AskedFormat(),
                "How tables are printed. text: as wide as the terminal, with everything else; "
                "markdown, csv: the tables alone, complete")
          ->TypeName("NAME")
          ->Check(OneOf({"text", "markdown", "csv"}))
          ->ShowDefault();
  const bool json = std::any_of(info_->options.begin(), info_->options.end(),
                                [](const OptionInfo& one) { return one.Name() == "--json"; });
  return json ? format->Excludes(FindOption("--json")) : format;
}

Option* CommandLine::FindOption(const std::string& name) {
  size_t index = 0;
  while (index + 1 < info_->options.size()) {
    const std::vector<std::string>& names = info_->options[index].names;
    if (std::find(names.begin(), names.end(), name) != names.end()) break;
    ++index;
  }
  options_.push_back(std::make_unique<Option>(app_->get_option(name), info_, index));
  return options_.back().get();
}

void CommandLine::RequireCommand() {
  app_->require_subcommand(1);
  info_->needs_command = true;
}
void CommandLine::AllowCommand() { app_->require_subcommand(0, 1); }
bool CommandLine::CommandGiven() const { return !app_->get_subcommands().empty(); }
void CommandLine::RequireOneOption() { app_->require_option(1); }

void CommandLine::TakeCommand() {
  app_->add_option("COMMAND", program_)->type_name("");
  app_->prefix_command();
  info_->takes_command = true;
}

void CommandLine::MayTakeCommand() { info_->may_take_command = true; }

std::vector<std::string> CommandLine::CommandAfterDashes(const std::string& usage) const {
  // CLI11 keeps words that match no option, and the "--" itself.
  const std::vector<std::string> rest = app_->remaining();
  const auto mark = std::find(rest.begin(), rest.end(), "--");
  if (mark != rest.begin() && !rest.empty() && rest.front().starts_with('-')) {
    throw UsageError{"", UnknownWord(*info_, rest.front())};
  }
  if (mark == rest.end() && !program_.empty()) {
    throw UsageError{"", "put -- before the command: " + usage + " " + program_};
  }
  if (mark != rest.begin() && !rest.empty()) {
    throw UsageError{"", "'" + rest.front() + "' is not allowed before --"};
  }
  if (program_.empty()) return {};
  std::vector<std::string> command = {program_};
  command.insert(command.end(), mark + 1, rest.end());
  return command;
}

void CommandLine::Hide() {
  app_->group("");
  info_->hidden = true;
}

void CommandLine::Describe(const std::string& paragraph) { info_->paragraphs.push_back(paragraph); }
void CommandLine::Example(const std::string& command, const std::string& text) {
  info_->examples.push_back({command, text});
}
void CommandLine::ExitStatus(int status, const std::string& text) {
  info_->exit_statuses.push_back({status, text});
}
void CommandLine::Judges() {
  ExitStatus(kExitFine, "no finding is worse than a note");
  ExitStatus(kExitWarnings, "there are warnings, and no errors");
  ExitStatus(kExitErrors, "there are errors");
}
void CommandLine::SeeAlso(const std::vector<std::string>& pages) {
  info_->see_also.insert(info_->see_also.end(), pages.begin(), pages.end());
}
void CommandLine::Variable(const std::string& name, const std::string& text) {
  info_->environment.emplace_back(name, text);
}

void CommandLine::Callback(std::function<void()> function) { app_->callback(std::move(function)); }

}  // namespace diapason::cli
