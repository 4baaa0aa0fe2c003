#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace diapason::launch {

// Parts of the library that must be processes of their own: the launcher of local ranks, which may
// have one thread only (kLocalLaunch), and a rank that measures (measure/worker.h). The library
// starts the program that links it once more, with the helper's name as the first argument; main()
// of that program calls RunHelper before anything else.
struct Helper {
  const char* name;  // "@launch": no command of a tool begins like this
  int (*run)(const std::vector<std::string>& arguments);  // the exit status
};

// Runs the helper that the first argument names; nothing where it names none.
std::optional<int> RunHelper(int argc, char** argv, std::initializer_list<Helper> helpers);

}  // namespace diapason::launch
