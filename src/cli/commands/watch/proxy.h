#pragma once

#include <string>

#include "base/status.h"
#include "watch/proxy_dump.h"

namespace diapason::cli {

// Options of `diapason proxy dump`. Declared in proxy.cc, implemented in proxy_ask.cc.
struct ProxyAsked {
  int pid = 0;       // 0: only read `from`
  std::string from;  // log that receives the standard output of the process
  double again_s = 0;
  double timeout_s = 5;
  bool fill = false;
  bool json = false;
};
Result<int> RunProxyDump(const ProxyAsked& asked);

}  // namespace diapason::cli
