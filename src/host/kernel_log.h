#pragma once

#include <string>
#include <vector>

#include "base/root_fs.h"

namespace diapason::host {

// A message of a GPU's driver about a fault.
struct KernelEvent {
  int xid = 0;         // NVIDIA's number; 0: the AMD driver's message
  std::string device;  // "0000:41:00"; "" if the message has none
  std::string line;    // the message, at most 200 characters
};

struct KernelLog {
  std::vector<KernelEvent> events;  // oldest first, at most 1000
  std::string source;               // "/dev/kmsg", "/var/log/kern.log"; "" if none could be read
};

// The messages in the kernel's buffer or, where that may not be read, in the log files of the
// system. Reads a bounded amount, and never waits.
KernelLog ReadKernelLog(const RootFs& tree);

// The events in a text of log lines.
std::vector<KernelEvent> FindKernelEvents(const std::string& text);

}  // namespace diapason::host
