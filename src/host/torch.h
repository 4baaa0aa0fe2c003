#pragma once

#include <string>
#include <vector>

#include "host/libraries.h"

namespace diapason::host {

// An installation of PyTorch, as read from its files; Python is not run.
struct Torch {
  std::string folder;      // ".../site-packages/torch"
  std::string version;     // "2.9.0+cu128"
  std::string toolkit;     // "CUDA 12.8", "ROCm 6.4"; "" for CPUs only
  bool with_nccl = false;  // it has the process group for NCCL or RCCL
  // The collective library is a separate file, not linked into PyTorch's.
  bool library_apart = true;
  Library library = Library::kNccl;
  // The file that its loader would take; "" if none is found. `taken_because` names the rule that
  // decided: "LD_PRELOAD", "LD_LIBRARY_PATH", "its own search path", "the loader's cache".
  std::string loads;
  std::string taken_because;
  // The file by its own search path alone; differs from `loads` if another rule comes first.
  std::string own;
};

// Every PyTorch in the reachable environments, at most 16.
std::vector<Torch> FindTorch(const RootFs& tree, const Environment& environment,
                             const std::vector<LibraryFile>& files);

}  // namespace diapason::host
