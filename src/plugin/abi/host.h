#pragma once

#include <string>

#include "base/settings.h"
#include "domain/vocabulary.h"
#include "plugin/abi/abi.h"

namespace diapason::plugin {

// The library that has loaded us.
struct Host {
  Library library = Library::kNccl;
  int version = 0;   // as ncclGetVersion has it, 22809 for 2.28.9; 0: unknown
  std::string file;  // where its code is; empty: unknown

  // From 2.29 on, and where the version is not known: a call can be asked about twice, on some
  // ranks only; grouped broadcasts ask as allgather, and broadcasts have no events; the answer's
  // protocol decides between two kinds of kernels.
  bool has_new_scheduler() const { return version == 0 || version >= 22900; }
};

// Looks at the file that holds the logger the library handed over: its name, what it exports, its
// version. Opens nothing that is not already in the process. DIAPASON_LIBRARY decides when set.
Host DetectHost(abi::Logger logger, const Settings& settings);

// Whether the user has set an environment variable to something.
bool VariableIsSet(const char* name);

// The library's own log, in its own numbering of levels (RCCL's differs from 2.27 on). A missing
// logger makes it silent.
class HostLog {
 public:
  HostLog(abi::Logger logger, const Host& host);
  void Info(const std::string& text) const;
  void Warn(const std::string& text) const;
  // Allocates nothing: for when there is no memory.
  void WarnSteppingAside(const char* why) const noexcept;
  void WarnCannotGoOn(const char* why) const noexcept;

 private:
  abi::Logger logger_;
  int info_level_;
  int warn_level_;
};

}  // namespace diapason::plugin
