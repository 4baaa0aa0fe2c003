#pragma once

#include <string>
#include <vector>

#include "domain/collectives.h"

namespace diapason::cli {

// The names that completion offers, and --help shows, for options that take one.
inline std::vector<std::string> MeasuredCollectives() {
  std::vector<std::string> names;
  for (const OperationFacts& facts : kOperations) {
    if (*facts.measured != '\0') names.emplace_back(facts.measured);
  }
  return names;
}
inline std::vector<std::string> TunedCollectives() {
  std::vector<std::string> names;
  for (const OperationFacts& facts : kOperations) {
    if (*facts.nccl != '\0') names.emplace_back(facts.measured);
  }
  return names;
}
inline std::vector<std::string> LibraryWords() {
  std::vector<std::string> names;
  for (int i = 0; i < kLibraryCount; ++i) names.emplace_back(LibraryName(Library(i)));
  return names;
}
inline std::vector<std::string> NcclOrRccl() {
  std::vector<std::string> names;
  for (int i = 0; i < kLibraryCount; ++i) {
    if (AsksTuner(Library(i))) names.emplace_back(LibraryName(Library(i)));
  }
  return names;
}
inline std::vector<std::string> DataTypeWords() {
  return {"float", "double", "half", "bfloat16", "int8", "uint8", "int32", "int64"};
}

// Syntax of options that take several sizes.
inline constexpr char kSizesText[] = "a list 1K,8K,1M or a range 1K:8M, 1K:8M:x4, 1M:8M:+1M";

}  // namespace diapason::cli
