#pragma once

#include <string>

#include "base/settings.h"
#include "domain/vocabulary.h"
#include "plugin/abi/abi.h"

namespace diapason::plugin {

// The library that has loaded the plugin.
struct Host {
  Library library = Library::kNccl;
  int version = 0;   // as ncclGetVersion reports it, 22809 for 2.28.9; 0: unknown
  std::string file;  // the file that holds its code; empty: unknown

  // True from 2.29 on and for an unknown version. Such a library may ask about one call twice, on
  // some ranks only; it asks about grouped broadcasts as allgather and sends no events for
  // broadcasts; and the protocol in the answer selects between two kinds of kernels.
  bool has_new_scheduler() const { return version == 0 || version >= 22900; }

  // True from 2.31 on; an unknown version with API v7 is later. Such a library reads the table as
  // TableRules says, uses a tuner's channel count only to lower its own, never goes below
  // NCCL_MIN_CTAS, and lets a call have a configuration of its own, which removes pairs from that
  // call's table.
  bool is_2_31(int tuner_api) const { return version != 0 ? version >= 23100 : tuner_api >= 7; }
};

// Identifies the library by the file that contains its logger: the file name, the exported symbols,
// the version. Loads no further library. DIAPASON_LIBRARY overrides the detection.
Host DetectHost(abi::Logger logger, const Settings& settings);

// Whether an environment variable is set and not empty.
bool VariableIsSet(const char* name);

// The library's log, in the library's numbering of levels (RCCL's differs from 2.27 on). Without a
// logger, messages are dropped.
class HostLog {
 public:
  HostLog(abi::Logger logger, const Host& host);
  void Info(const std::string& text) const;
  void Warn(const std::string& text) const;
  // Does not allocate: used when memory has run out.
  void WarnSteppingAside(const char* why) const noexcept;
  void WarnCannotGoOn(const char* why) const noexcept;

 private:
  abi::Logger logger_;
  int info_level_;
  int warn_level_;
};

}  // namespace diapason::plugin
