#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/printable.h"

namespace diapason::cli {

// JSON for programs, two blanks a level, without a line feed at its end. Text in it may come from
// files: what is no UTF-8 is replaced, and no byte of it can move a terminal's cursor.
template <typename Json>
std::string JsonText(const Json& json, int indent = 2) {
  return PrintableJson(json.dump(indent, ' ', false, Json::error_handler_t::replace));
}

}  // namespace diapason::cli
