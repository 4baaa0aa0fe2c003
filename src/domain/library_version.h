#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace diapason {

// Versions of NCCL and RCCL as one number, as ncclGetVersion reports them since 2.9: 22809 for
// 2.28.9. They compare as numbers. 0 means unknown.

// "2.28.9" or "2.28" -> 22809, 22800.
Result<int> ParseLibraryVersion(std::string_view text);

// "2.28.9" for 22809; empty for 0.
std::string LibraryVersionText(int version);

// Converts the result of ncclGetVersion; before 2.9 it was 2708 for 2.7.8.
inline int LibraryVersionOfCode(int code) {
  return code < 10000 ? code / 1000 * 10000 + code / 100 % 10 * 100 + code % 100 : code;
}

}  // namespace diapason
