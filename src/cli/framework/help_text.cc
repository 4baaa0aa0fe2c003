#include <algorithm>

#include "base/text.h"
#include "cli/framework/command_info.h"

namespace diapason::cli {
namespace {

constexpr size_t kTextColumn = 30;
constexpr int kNarrowest = 50;

// Wraps `text` into lines of at most `columns`, all but the first indented; a longer word gets a
// line of its own.
std::string Wrap(const std::string& text, size_t indent, size_t columns) {
  std::string wrapped;
  size_t at = indent;
  for (const std::string_view word : Split(text, ' ')) {
    if (word.empty()) continue;
    if (at > indent && at + 1 + word.size() > columns) {
      wrapped += "\n" + std::string(indent, ' ');
      at = indent;
    } else if (at > indent) {
      wrapped += ' ';
      ++at;
    }
    wrapped += word;
    at += word.size();
  }
  return wrapped;
}

std::string Entry(const std::string& left, const std::string& right, size_t columns) {
  std::string line = "  " + left;
  if (right.empty()) return line + "\n";
  if (line.size() + 2 > kTextColumn) {
    line += "\n" + std::string(kTextColumn, ' ');
  } else {
    line.resize(kTextColumn, ' ');
  }
  return line + Wrap(right, kTextColumn, columns) + "\n";
}

std::string OptionLeft(const OptionInfo& option) {
  if (option.by_place()) return option.value + (option.several ? "..." : "");
  // Options without a short name are aligned with the long names of the others.
  std::string left = option.names.front().starts_with("--") ? "    " : "";
  left += Join(option.names, ", ");
  return option.value.empty() ? left : left + " " + option.value;
}

template <typename Item>
std::vector<std::string> Headings(const std::vector<Item>& items,
                                  const std::string& (*heading)(const Item&)) {
  std::vector<std::string> titles;
  for (const Item& item : items) {
    if (std::find(titles.begin(), titles.end(), heading(item)) == titles.end()) {
      titles.push_back(heading(item));
    }
  }
  return titles;
}

std::string Options(const CommandInfo& command, size_t columns) {
  std::string text;
  std::vector<OptionInfo> options;
  for (const OptionInfo& option : ShownOptions(command)) {
    if (!option.by_place()) options.push_back(option);
  }
  for (const std::string& title : Headings<OptionInfo>(
           options, [](const OptionInfo& o) -> const std::string& { return o.heading; })) {
    text += "\n" + (title.empty() ? "Options" : title) + ":\n";
    for (const auto& [name, what] : command.heading_texts) {
      if (name == title) text += "  " + Wrap(what, 2, columns) + "\n";
    }
    for (const OptionInfo& option : options) {
      if (option.heading == title) text += Entry(OptionLeft(option), WholeText(option), columns);
    }
  }
  return text;
}

std::string Commands(const CommandInfo& command, size_t columns) {
  std::string text;
  const std::vector<const CommandInfo*> shown = command.Shown();
  for (const std::string& title : Headings<const CommandInfo*>(
           shown, [](const CommandInfo* const& c) -> const std::string& { return c->heading; })) {
    text += "\n" + (title.empty() ? "Commands" : title) + ":\n";
    for (const CommandInfo* one : shown) {
      if (one->heading == title) text += Entry(one->name(), one->text, columns);
    }
  }
  return text;
}

}  // namespace

std::string HelpText(const CommandInfo& command, int wanted_columns) {
  const auto columns = static_cast<size_t>(std::max(wanted_columns, kNarrowest));
  std::string text;
  std::string lead = "Usage: ";
  for (const std::string& usage : UsageLines(command)) {
    const std::string start = lead + command.Words() + " ";
    // Does not align with "[OPTIONS]" if the command's own words are long.
    const size_t indent = std::min<size_t>(start.size(), columns / 2);
    text += start + Wrap(usage, indent, columns) + "\n";
    lead = "       ";
  }
  text += "\n" + Wrap(command.text + ".", 0, columns) + "\n";
  for (const std::string& paragraph : command.paragraphs) {
    text += "\n" + Wrap(paragraph, 0, columns) + "\n";
  }
  text += Commands(command, columns);
  std::string arguments;
  for (const OptionInfo& option : command.options) {
    if (option.by_place()) arguments += Entry(OptionLeft(option), WholeText(option), columns);
  }
  if (command.takes_command || command.may_take_command) {
    arguments += Entry("COMMAND [ARGUMENT...]", "After --: a program and its arguments", columns);
  }
  if (!arguments.empty()) text += "\nArguments:\n" + arguments;
  text += Options(command, columns);
  if (!command.examples.empty()) text += "\nExamples:\n";
  for (const Example& example : command.examples) {
    for (const std::string& line : ExampleLines(example, columns - 2)) text += "  " + line + "\n";
    if (!example.text.empty()) text += "      " + Wrap(example.text, 6, columns) + "\n";
  }
  if (!command.exit_statuses.empty()) text += "\nExit status:\n";
  if (!command.exit_statuses.empty()) {
    for (const ExitStatus& one : AllExitStatuses(command)) {
      const std::string left = Format("  {:<5}", one.status);
      text += left + Wrap(one.text, left.size(), columns) + "\n";
    }
  }
  if (!command.Shown().empty()) {
    text += "\n" +
            Wrap("`" + command.Words() + " COMMAND --help` describes each command.", 0, columns) +
            "\n";
  }
  return text;
}

}  // namespace diapason::cli
