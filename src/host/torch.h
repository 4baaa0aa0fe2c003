#pragma once

#include <string>
#include <vector>

#include "host/libraries.h"

namespace diapason::host {

// An installation of PyTorch, as its files tell; Python is not run.
struct Torch {
  std::string folder;         // ".../site-packages/torch"
  std::string version;        // "2.9.0+cu128"
  std::string toolkit;        // "CUDA 12.8", "ROCm 6.4"; "" for CPUs only
  bool with_nccl = false;     // it has the process group for NCCL or RCCL
  bool library_apart = true;  // the collective library is a file of its own, not inside PyTorch's
  Library library = Library::kNccl;
  // Which file its loader would take; "" where none is found. `taken_because` says which rule
  // decided: "LD_PRELOAD", "LD_LIBRARY_PATH", "its own search path", "the loader's cache".
  std::string loads;
  std::string taken_because;
  // What it would take by its own search path alone; differs from `loads` where something is in
  // front of it.
  std::string own;
};

// Every PyTorch in the environments in reach, at most 16.
std::vector<Torch> FindTorch(const RootFs& tree, const Environment& environment,
                             const std::vector<LibraryFile>& files);

}  // namespace diapason::host
