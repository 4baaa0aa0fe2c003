#pragma once

#include <concepts>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/units.h"
#include "cli/framework/rules.h"

namespace diapason::cli {

// A value that `parse` understands. The command line is checked by the very function that reads the
// value later, before anything is opened or started; what that says of a wrong one is the mistake
// in usage that is reported.
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

// A share as ParseShare reads it: "5%" or 0.05. `what` is what it is called.
inline ValueRule ShareOf(const std::string& what) {
  return ReadBy([what](const std::string& text) { return ParseShare(text, what); });
}

}  // namespace diapason::cli
