#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

// What every fuzz target defines: libFuzzer calls it (`./dev fuzz NAME`), and so does the runner
// that replays the corpus in the tests.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace diapason::fuzz {

inline std::string_view Text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// A promise that must hold for every input, in release builds too.
inline void Promise(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

}  // namespace diapason::fuzz
