#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "base/root_fs.h"
#include "base/status.h"
#include "domain/vocabulary.h"

namespace diapason::host {

// A copy of a collective library on the disk, and what its file contains: it is read, never
// executed.
struct LibraryFile {
  std::string path;       // as found
  std::string real_path;  // links followed
  Library library = Library::kNccl;
  int version = 0;              // 22809; 0: unknown
  std::string version_text;     // the version text in the file: "2.28.9+cuda13.0"
  std::string toolkit;          // "CUDA 13.0", "ROCm 6.2.2"; "" if unknown
  std::vector<int> tuner_apis;  // plugin interface versions it looks up, ascending
  std::vector<int> profiler_apis;
  std::vector<int> env_apis;
  std::vector<int> net_apis;
  std::string found_by;  // "PyTorch's nvidia-nccl package", "ldconfig", "LD_LIBRARY_PATH", ...
};

// Reads one file. Fails if it is not a shared library of NCCL or RCCL.
Result<LibraryFile> LookAtLibrary(const RootFs& tree, const std::string& path);

// Every libnccl and librccl that is found: LD_PRELOAD, LD_LIBRARY_PATH, the loader's cache and
// standard folders, /opt/rocm*, CUDA's folders, Python's site-packages (nvidia/nccl, torch/lib) of
// the reachable environments. Without duplicates.
std::vector<LibraryFile> FindLibraries(const RootFs& tree, const Environment& environment);

// The folders of Python packages in the reachable environments: PYTHONPATH, VIRTUAL_ENV,
// CONDA_PREFIX, beside the folders of PATH, ~/.local, the system's.
std::vector<std::string> PythonFolders(const RootFs& tree, const Environment& environment);

// The file that the loader would give a program linked against libnccl.so.2 (librccl.so.1); "" for
// none.
std::string WouldLoad(const std::vector<LibraryFile>& files, Library library, const RootFs& tree,
                      const Environment& environment);
// The same by one variable alone, "LD_PRELOAD" or "LD_LIBRARY_PATH".
std::string LoadedBy(const std::string& variable, const std::vector<LibraryFile>& files,
                     Library library, const RootFs& tree, const Environment& environment);

// The file that dlopen would open for a name, by LD_LIBRARY_PATH, the loader's cache and the
// standard folders; a name with a '/' is a path. "" for none. What the calling library brings
// (RUNPATH) is not considered.
std::string WouldOpen(const std::string& name, const RootFs& tree, const Environment& environment);

}  // namespace diapason::host
