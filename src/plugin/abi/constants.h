#pragma once

#include <cstddef>
#include <vector>

#include "plugin/abi/abi.h"

// The constants of the library's cost model, which tuner API v5 and later pass at init: arrays of
// double, first latencies, then five arrays of bandwidth limits with one row per GPU generation.
// v5 and v6 have four generations, v7 has five (Rubin is the last).
//
// The pointer is valid during init only: for an API older than its own the library passes a copy
// on its stack. What is needed later is copied.
namespace diapason::plugin {

// 0 before v5.
constexpr size_t ConstantsBytes(int api) { return api < 5 ? 0 : api < 7 ? 1152 : 1272; }

// Copies constants from the layout of one API version to that of another. What only the target has
// keeps its value. Both versions are 5 or later.
void ConvertConstants(const abi::Constants* from, int from_api, abi::Constants* to, int to_api);

// A copy of the library's constants from before a chained tuner's init, which may change them.
class KeptConstants {
 public:
  // `api` is the library's. nullptr, or before API v5: there is nothing to keep.
  void Keep(abi::Constants* constants, int api);
  // Restores the copy, if there is one. Valid only during init.
  void Restore();
  // The end of init: the pointer is not used any more.
  void Forget();

 private:
  abi::Constants* constants_ = nullptr;
  std::vector<char> before_;
};

}  // namespace diapason::plugin
