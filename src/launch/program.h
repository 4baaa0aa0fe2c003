#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "process/child.h"

namespace diapason::launch {

// Another program, spoken to line by line. A Ctrl-C at the terminal reaches only us, and the kernel
// kills the program if we are killed.
class Program {
 public:
  // `command[0]` is looked for in PATH. `environment` is added to our own; an empty value removes.
  // `show_errors`: what it writes to standard error is also written to ours, until it is stopped.
  static Result<std::unique_ptr<Program>> Start(
      const std::vector<std::string>& command,
      const std::vector<std::pair<std::string, std::string>>& environment = {},
      bool show_errors = false);

  ~Program() { show_errors_ = false; }  // how it takes being stopped is not the user's concern
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Fails if it takes no more input, or has not taken this within a minute.
  Status WriteLine(const std::string& line);
  // The next line of its standard output, without the line feed. kTimeout at the deadline,
  // kPeerLost when there will be no more.
  Result<std::string> ReadLine(Deadline deadline);
  // Everything up to its end, at most `most` bytes.
  Result<std::string> ReadAll(size_t most, Deadline deadline);

  // No more input will come. Then its exit status, 128 + signal if one killed it; kTimeout if it
  // does not end.
  Result<int> Finish(Deadline deadline);

  // The last lines it wrote to standard error, for people.
  std::string ErrorTail();

 private:
  Program() = default;

  bool show_errors_ = false;
  std::string text_;  // of standard output, not yet taken
  process::BoundedText errors_{size_t{1} << 16};
  std::unique_ptr<process::Child> child_;  // destroyed first: stopping it reads its output
};

}  // namespace diapason::launch
