#include "cli/framework/command_info.h"

#include <algorithm>

#include "base/text.h"

namespace diapason::cli {
namespace {

void Collect(const CommandInfo& command, std::vector<const CommandInfo*>* all) {
  all->push_back(&command);
  for (const CommandInfo* below : command.Shown()) Collect(*below, all);
}

std::string OptionUsage(const OptionInfo& option) {
  std::string text = option.by_place() ? option.value : option.Name() + " " + option.value;
  if (option.several) text += "...";
  return text;
}

}  // namespace

std::string CommandInfo::Words() const { return Join(path, " "); }

std::vector<const CommandInfo*> CommandInfo::Shown() const {
  std::vector<const CommandInfo*> shown;
  for (const std::shared_ptr<CommandInfo>& command : below) {
    if (!command->hidden) shown.push_back(command.get());
  }
  return shown;
}

const CommandInfo* CommandInfo::Find(std::string_view wanted) const {
  for (const std::shared_ptr<CommandInfo>& command : below) {
    if (command->name() == wanted) return command.get();
  }
  return nullptr;
}

void FillWords(CommandInfo* tool) {
  for (OptionInfo& option : tool->options) {
    if (option.make_words) option.words = option.make_words();
  }
  for (const auto& below : tool->below) FillWords(below.get());
}

std::vector<const CommandInfo*> AllCommands(const CommandInfo& tool) {
  std::vector<const CommandInfo*> all;
  Collect(tool, &all);
  return all;
}

std::string WholeText(const OptionInfo& option) {
  std::vector<std::string> more;
  // The placeholder "0|1" already shows the bounds.
  if (!option.bounds.empty() && option.value.find('|') == std::string::npos) {
    more.push_back(option.bounds);
  }
  if (!option.fallback.empty()) more.push_back("default " + option.fallback);
  if (!option.needs.empty()) more.push_back("needs " + Join(option.needs, ", "));
  if (!option.not_with.empty()) more.push_back("not with " + Join(option.not_with, ", "));
  if (option.several && !option.by_place()) more.emplace_back("repeatable");
  return more.empty() ? option.text : option.text + " (" + Join(more, "; ") + ")";
}

std::vector<std::string> UsageLines(const CommandInfo& command) {
  std::vector<std::string> lines;
  if (command.needs_command) {
    lines.emplace_back("COMMAND [OPTIONS]");
    return lines;
  }
  std::vector<std::string> parts;
  for (const OptionInfo& option : command.options) {
    if (option.required && !option.by_place()) parts.push_back(OptionUsage(option));
  }
  parts.emplace_back("[OPTIONS]");
  for (const OptionInfo& option : command.options) {
    if (!option.by_place()) continue;
    parts.push_back(option.required ? OptionUsage(option) : "[" + OptionUsage(option) + "]");
  }
  if (command.takes_command) parts.emplace_back("-- COMMAND [ARGUMENT...]");
  lines.push_back(Join(parts, " "));
  if (command.may_take_command) lines.emplace_back("[OPTIONS] -- COMMAND [ARGUMENT...]");
  if (!command.Shown().empty()) lines.emplace_back("COMMAND [OPTIONS]");
  return lines;
}

std::vector<OptionInfo> ShownOptions(const CommandInfo& command) {
  std::vector<OptionInfo> options = command.options;
  std::stable_partition(options.begin(), options.end(),
                        [](const OptionInfo& option) { return option.Name() != "--help"; });
  return options;
}

std::vector<std::string> ExampleLines(const Example& example, size_t columns) {
  std::vector<std::string> lines(1);
  for (const std::string_view word : Split(example.command, ' ')) {
    // Two columns for the blank and the backslash.
    if (!lines.back().empty() && lines.back().size() + word.size() + 3 > columns) {
      lines.back() += " \\";
      lines.emplace_back("   ");
    }
    lines.back() += (lines.back().empty() ? "" : " ") + std::string(word);
  }
  return lines;
}

std::vector<ExitStatus> AllExitStatuses(const CommandInfo& command) {
  std::vector<ExitStatus> all = command.exit_statuses;
  const ExitStatus common[] = {
      {0, "fine"},
      {1, "the input is invalid, or a required file or resource is missing"},
      {2, "the command line is invalid"}};
  for (const ExitStatus& one : common) {
    const bool there = std::any_of(all.begin(), all.end(),
                                   [&](const ExitStatus& x) { return x.status == one.status; });
    if (!there) all.push_back(one);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const ExitStatus& a, const ExitStatus& b) { return a.status < b.status; });
  return all;
}

}  // namespace diapason::cli
