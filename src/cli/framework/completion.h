#pragma once

#include <string>

#include "cli/framework/command_info.h"

namespace diapason::cli {

// What kind of value follows an option; selects what completion offers.
enum class ValueKind { kNone, kFile, kFolder, kWords, kOther };
ValueKind KindOf(const OptionInfo& option);

// The first sentence of a text, for the descriptions that shells show beside a name.
std::string ShortText(const std::string& text);

}  // namespace diapason::cli
