#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "base/root_fs.h"
#include "base/status.h"
#include "domain/vocabulary.h"

namespace diapason::host {

// A copy of a collective library on the disk, and what can be told from the file alone: it is read,
// never executed.
struct LibraryFile {
  std::string path;       // as found
  std::string real_path;  // links followed
  Library library = Library::kNccl;
  int version = 0;              // 22809; 0: it does not tell
  std::string version_text;     // what the file says of itself: "2.28.9+cuda13.0"
  std::string toolkit;          // "CUDA 13.0", "ROCm 6.2.2"; "" where it does not tell
  std::vector<int> tuner_apis;  // interface versions it looks up in plugins, ascending
  std::vector<int> profiler_apis;
  std::vector<int> env_apis;
  std::vector<int> net_apis;
  std::string found_by;  // "PyTorch's nvidia-nccl package", "ldconfig", "LD_LIBRARY_PATH", ...
};

// Reads one file. An error when it is not a shared library of NCCL or RCCL.
Result<LibraryFile> LookAtLibrary(const RootFs& tree, const std::string& path);

// Every libnccl and librccl that is found: LD_PRELOAD, LD_LIBRARY_PATH, the loader's cache and
// standard folders, /opt/rocm*, CUDA's folders, Python's site-packages (nvidia/nccl, torch/lib) of
// the environments in reach. Each real file once.
std::vector<LibraryFile> FindLibraries(const RootFs& tree, const Environment& environment);

// The folders in which Python packages of the environments in reach lie: PYTHONPATH, VIRTUAL_ENV,
// CONDA_PREFIX, beside the folders of PATH, ~/.local, the system's.
std::vector<std::string> PythonFolders(const RootFs& tree, const Environment& environment);

// Which of them a program that was linked against libnccl.so.2 (librccl.so.1) would get from the
// loader; "" for none.
std::string WouldLoad(const std::vector<LibraryFile>& files, Library library, const RootFs& tree,
                      const Environment& environment);
// The same by one variable alone, "LD_PRELOAD" or "LD_LIBRARY_PATH".
std::string LoadedBy(const std::string& variable, const std::vector<LibraryFile>& files,
                     Library library, const RootFs& tree, const Environment& environment);

}  // namespace diapason::host
