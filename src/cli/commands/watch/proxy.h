#pragma once

#include <string>

#include "watch/proxy_dump.h"

namespace diapason::cli {

// `diapason proxy dump`: what was asked. Declared in proxy.cc, done in proxy_ask.cc.
struct ProxyAsked {
  int pid = 0;       // 0: only read `from`
  std::string from;  // the log that the process's standard output ends up in
  double again_s = 0;
  double timeout_s = 5;
  bool fill = false;
  bool json = false;
};
int RunProxyDump(const ProxyAsked& asked);

}  // namespace diapason::cli
