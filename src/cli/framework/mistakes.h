#pragma once

#include <string>
#include <vector>

#include "cli/framework/command_info.h"

namespace diapason::cli {

// Messages for invalid command lines.

// Follows the words from `*command` downwards while a subcommand is required, and sets `*command`
// to the last command it reached. Returns "" if no word is wrong.
std::string WrongCommand(const std::vector<std::string>& words, const CommandInfo** command);

// Message for a word that the command does not accept: "unknown option '--sise' of sweep; did you
// mean '--sizes'?".
std::string UnknownWord(const CommandInfo& command, const std::string& given);

}  // namespace diapason::cli
