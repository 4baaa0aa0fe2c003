#pragma once

#include <string>
#include <vector>

#include "host/libraries.h"
#include "host/torch.h"

namespace diapason::host {

// The collective library that a job on this machine will use, and why. A machine often has two: the
// system's, which the loader gives a program, and the one that PyTorch brings.
struct JobLibrary {
  Library library = Library::kNccl;
  std::string file;      // "": none was found
  int version = 0;       // 22809; 0: unknown
  std::string because;   // "PyTorch 2.9.0 loads it", "DIAPASON_NCCL_LIBRARY names it"
  bool by_name = false;  // the loader's choice: any program of this machine gets it by its name
  // What a program gets from the loader, if that is another file.
  std::string program_file;
  int program_version = 0;

  // "PyTorch 2.9.0 loads it; a program gets 2.28.3, /usr/lib/libnccl.so.2"
  std::string WhyText() const;
};

// The PyTorch that `python3` would import: of PYTHONPATH, VIRTUAL_ENV, CONDA_PREFIX, or of the
// first interpreter on PATH, by their files alone. Where there is no interpreter, the first in any
// reachable environment. nullptr for none. `torches` as FindTorch has returned them.
const Torch* JobTorch(const RootFs& tree, const Environment& environment,
                      const std::vector<Torch>& torches);

// Looked for in this order: LD_PRELOAD (a process has one copy only); the setting
// DIAPASON_NCCL_LIBRARY (DIAPASON_RCCL_LIBRARY); what JobTorch loads; the loader's; what any other
// PyTorch loads. A file that the setting names is added to `files`.
JobLibrary FindJobLibrary(const RootFs& tree, const Environment& environment, Library library,
                          const std::vector<Torch>& torches, std::vector<LibraryFile>* files);

// The setting that names the file for a library.
const char* LibraryFileSetting(Library library);

}  // namespace diapason::host
