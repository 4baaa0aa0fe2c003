#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace diapason::knobs {

// A word of a shell command, without its quotes; expansions ("$X", "$(date)") as written.
struct ShellWord {
  std::string text;
  size_t line = 1;
  bool quoted = false;           // a part of it was in quotes
  bool expands = false;          // a part of it is known only at run time
  std::vector<ShellWord> array;  // of NAME=(...)
};

struct HereDocument {
  std::string text;
  size_t line = 1;  // of its first line
};

// A simple command, up to a separator.
struct ShellCommand {
  std::vector<ShellWord> words;
  std::vector<std::string> targets;     // files after > and >>
  std::vector<HereDocument> documents;  // after <<
  std::string separator;  // what ended it: "\n", ";", ";;", "&", "&&", "||", "|", "(" or ")"
};

// A line such as "#SBATCH --export=ALL,A=1", a comment to the shell.
struct ShellDirective {
  std::string text;
  size_t line = 1;
};

struct ShellText {
  std::vector<ShellCommand> commands;
  std::vector<ShellDirective> directives;
};

// Splits a script as a shell does: quotes, continued lines, comments, here-documents, arrays,
// nested expansions. Never fails: an unclosed quote ends with the line if it would swallow the rest
// of the script.
ShellText SplitShell(std::string_view text, size_t first_line);

}  // namespace diapason::knobs
