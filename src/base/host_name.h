#pragma once

#include <unistd.h>

#include <string>

namespace diapason {

// This machine's name as the kernel has it; "localhost" where it has none.
inline std::string HostName() {
  char name[256] = "";
  const bool known = ::gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0';
  return known ? name : "localhost";
}

}  // namespace diapason
