#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/printable.h"

namespace diapason::cli {

// Serialises JSON with an indentation of two, without a final line feed. Text may come from
// untrusted files: invalid UTF-8 is replaced, and control characters are escaped so that they
// cannot move a terminal's cursor.
template <typename Json>
std::string JsonText(const Json& json, int indent = 2) {
  return PrintableJson(json.dump(indent, ' ', false, Json::error_handler_t::replace));
}

}  // namespace diapason::cli
