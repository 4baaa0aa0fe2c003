#pragma once

#include <dlfcn.h>

#include <string>

namespace diapason::comm::gpu {

// Resolves functions of an opened library and remembers the first missing one.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <typename Function>
  void Find(const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (*function == nullptr && missing_.empty()) missing_ = name;
  }
  // Empty if everything was found.
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

}  // namespace diapason::comm::gpu
