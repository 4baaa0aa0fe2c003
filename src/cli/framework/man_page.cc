#include <algorithm>

#include "base/text.h"
#include "cli/framework/command_info.h"

namespace diapason::cli {
namespace {

// Escapes text for troff. Hyphens become minus signs, so that text copied from a page can be pasted
// into a shell.
std::string Escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if (c == '\'') {
      escaped += "\\(aq";
    } else if (c == '`') {
      escaped += "\\(ga";
    } else if (c == '^') {
      escaped += "\\(ha";
    } else if (c == '~') {
      escaped += "\\(ti";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// A line of text: `code` in bold, and no dot or quote at the start, which troff would read as a
// request.
std::string Line(std::string_view text) {
  std::string line;
  bool code = false;
  for (const std::string_view part : Split(text, '`')) {
    if (code) {
      line += "\\fB" + Escape(part) + "\\fR";
    } else {
      line += Escape(part);
    }
    code = !code;
  }
  if (line.starts_with('.')) line.insert(0, "\\&");
  return line + "\n";
}

std::string Bold(std::string_view text) { return "\\fB" + Escape(text) + "\\fR"; }
std::string Italic(std::string_view text) { return "\\fI" + Escape(text) + "\\fR"; }

std::string Tagged(const std::string& tag, const std::string& text) {
  return ".TP\n" + tag + "\n" + Line(text);
}

std::string OptionTag(const OptionInfo& option) {
  if (option.by_place()) return Italic(option.value + (option.several ? "..." : ""));
  std::string tag;
  for (const std::string& name : option.names) tag += (tag.empty() ? "" : ", ") + Bold(name);
  return option.value.empty() ? tag : tag + " " + Italic(option.value);
}

// Upper-case words of a usage line are placeholders, the others are typed literally.
std::string UsageText(const std::string& usage) {
  std::string text;
  for (const std::string_view word : Split(usage, ' ')) {
    if (!text.empty()) text += ' ';
    const bool typed = word.starts_with("-");
    text += typed ? Bold(word) : Italic(word);
  }
  return text;
}

std::string Section(const char* title) { return std::string(".SH ") + title + "\n"; }

std::string Synopsis(const CommandInfo& command) {
  std::string text = Section("SYNOPSIS");
  bool first = true;
  for (const std::string& usage : UsageLines(command)) {
    if (!first) text += ".br\n";
    first = false;
    text += Bold(command.Words()) + " " + UsageText(usage) + "\n";
  }
  return text;
}

std::string Commands(const CommandInfo& command) {
  if (command.Shown().empty()) return "";
  std::string text = Section("COMMANDS");
  std::string title;
  for (const CommandInfo* one : command.Shown()) {
    if (one->heading != title) {
      title = one->heading;
      text += ".SS \"" + Escape(title) + "\"\n";
    }
    text += Tagged("\\fB" + Escape(ManPageName(*one)) + "\\fR(1)", one->text + ".");
  }
  return text;
}

std::string Options(const CommandInfo& command) {
  std::string text;
  for (const OptionInfo& option : command.options) {
    if (option.by_place()) text += Tagged(OptionTag(option), WholeText(option) + ".");
  }
  if (command.takes_command || command.may_take_command) {
    text += Tagged("\\fB\\-\\-\\fR \\fICOMMAND\\fR [\\fIARGUMENT...\\fR]",
                   "A program and its arguments.");
  }
  if (!text.empty()) text = Section("ARGUMENTS") + text;
  text += Section("OPTIONS");
  const std::vector<OptionInfo> options = ShownOptions(command);
  std::vector<std::string> titles;
  for (const OptionInfo& option : options) {
    if (option.by_place()) continue;
    if (std::find(titles.begin(), titles.end(), option.heading) == titles.end()) {
      titles.push_back(option.heading);
    }
  }
  for (const std::string& title : titles) {
    const std::string shown = title.empty() && titles.size() > 1 ? "Common" : title;
    if (!shown.empty()) text += ".SS \"" + Escape(shown) + "\"\n";
    for (const auto& [name, what] : command.heading_texts) {
      if (name == title && !what.empty()) text += Line(what);
    }
    for (const OptionInfo& option : options) {
      if (option.by_place() || option.heading != title) continue;
      text += Tagged(OptionTag(option), WholeText(option) + ".");
    }
  }
  return text;
}

std::string Examples(const CommandInfo& command) {
  if (command.examples.empty()) return "";
  std::string text = Section("EXAMPLES");
  for (const Example& example : command.examples) {
    if (!example.text.empty()) text += Line(example.text + ":");
    text += ".PP\n.nf\n.RS 4\n";
    for (const std::string& line : ExampleLines(example, 68)) text += Escape(line) + "\n";
    text += ".RE\n.fi\n.PP\n";
  }
  // Without this the last paragraph would be empty.
  text.resize(text.size() - std::string(".PP\n").size());
  return text;
}

std::string SeeAlso(const CommandInfo& tool, const CommandInfo& command) {
  std::vector<std::string> pages;
  const auto add = [&](const std::string& page) {
    const bool own = page == ManPageName(command);
    if (!own && std::find(pages.begin(), pages.end(), page) == pages.end()) pages.push_back(page);
  };
  const CommandInfo* parent = &tool;
  add(ManPageName(tool));
  for (size_t i = 1; i + 1 < command.path.size(); ++i) {
    parent = parent->Find(command.path[i]);
    if (parent == nullptr) break;
    add(ManPageName(*parent));
  }
  if (parent != nullptr && parent != &tool) {
    for (const CommandInfo* sibling : parent->Shown()) add(ManPageName(*sibling));
  }
  for (const CommandInfo* below : command.Shown()) add(ManPageName(*below));
  for (const std::string& page : command.see_also) add(tool.name() + "-" + page);
  std::string text = Section("SEE ALSO");
  for (size_t i = 0; i < pages.size(); ++i) {
    text += ".BR " + Escape(pages[i]) + " (1)" + (i + 1 < pages.size() ? ",\n" : "\n");
  }
  return text;
}

}  // namespace

std::string ManPageName(const CommandInfo& command) { return Join(command.path, "-"); }

std::string ManPage(const CommandInfo& tool, const CommandInfo& command, std::string_view version) {
  const std::string name = ManPageName(command);
  std::string title = name;
  std::transform(title.begin(), title.end(), title.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  // No date, so that the build is reproducible.
  std::string page = ".\\\" Written by `diapason man` from the declarations of the command line.\n";
  page += ".TH " + Escape(title) + " 1 \"\" \"diapason " + std::string(version) +
          "\" \"User Commands\"\n";
  // No hyphenation and no justification: much of the text is typed literally.
  page += ".nh\n.ad l\n";
  page += Section("NAME") + Escape(name) + " \\- " + Escape(command.text) + "\n";
  page += Synopsis(command);
  page += Section("DESCRIPTION") + Line(command.text + ".");
  for (const std::string& paragraph : command.paragraphs) page += ".PP\n" + Line(paragraph);
  page += Commands(command) + Options(command) + Examples(command);
  page += Section("EXIT STATUS");
  for (const ExitStatus& one : AllExitStatuses(command)) {
    std::string what = one.text + ".";
    if (what[0] >= 'a' && what[0] <= 'z') what[0] = static_cast<char>(what[0] - 'a' + 'A');
    page += Tagged(Bold(Format("{}", one.status)), what);
  }
  if (!command.environment.empty()) page += Section("ENVIRONMENT");
  for (const auto& [variable, what] : command.environment)
    page += Tagged(Bold(variable), what + ".");
  page += SeeAlso(tool, command);
  return page;
}

}  // namespace diapason::cli
