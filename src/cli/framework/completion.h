#pragma once

#include <string>

#include "cli/framework/command_info.h"

namespace diapason::cli {

// What follows an option, for the one who completes it.
enum class ValueKind { kNone, kFile, kFolder, kWords, kOther };
ValueKind KindOf(const OptionInfo& option);

// The first sentence of a text, for the lists that shells show beside a name.
std::string ShortText(const std::string& text);

}  // namespace diapason::cli
