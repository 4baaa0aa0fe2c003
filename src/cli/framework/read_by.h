#pragma once

#include <concepts>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/units.h"
#include "cli/framework/rules.h"

namespace diapason::cli {

// Accepts the values that `parse` accepts. The command line is checked with the same function that
// parses the value later, before a file is opened or a process is started; the error message of
// `parse` is reported as a usage error.
template <typename Parse>
ValueRule ReadBy(Parse parse) {
  const auto wrong = [parse = std::move(parse)](std::string& text) -> std::string {
    const auto read = parse(text);
    if (read.ok()) return "";
    if constexpr (std::same_as<decltype(read), const Status>) {
      return read.message();
    } else {
      return read.status().message();
    }
  };
  return {wrong, ""};
}

// A share as ParseShare reads it: "5%" or 0.05. `what` names it in error messages.
inline ValueRule ShareOf(const std::string& what) {
  return ReadBy([what](const std::string& text) { return ParseShare(text, what); });
}

}  // namespace diapason::cli
