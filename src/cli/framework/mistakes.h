#pragma once

#include <string>
#include <vector>

#include "cli/framework/command_info.h"

namespace diapason::cli {

// What to say of a command line that is wrong.

// Follows the words from `*command` downwards as long as one below it has to be named, and leaves
// `*command` where it got to. "" where nothing is wrong with them.
std::string WrongCommand(const std::vector<std::string>& words, const CommandInfo** command);

// A word that the command has no place for: "unknown option '--sise' of sweep; did you mean
// '--sizes'?".
std::string UnknownWord(const CommandInfo& command, const std::string& given);

}  // namespace diapason::cli
