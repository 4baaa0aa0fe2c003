#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace diapason::job {

// A word in the text of a shell script, and where it stands.
struct ShellTextWord {
  std::string text;  // without quotes; what a shell would replace ($A, `x`, *) stands as written
  size_t begin = 0;
  size_t end = 0;
};

// The simple commands of a shell text in order: words between ; & && || | ( ) { } and line ends.
// Assignments before a command are words of it. Keywords (if, do, then) are left out; comments and
// redirections too. The text of a here-document is not told apart, so a text with "<<" has none.
std::vector<std::vector<ShellTextWord>> SimpleCommands(std::string_view text);

}  // namespace diapason::job
