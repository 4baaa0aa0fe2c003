#pragma once

#include <cstdint>

#include "plugin/abi/abi.h"

// The env plugin interface, versions 1 and 2, written from its published layout. Once it is loaded,
// the library reads every variable through it.
namespace diapason::plugin::abi {

struct EnvV1 {
  const char* name;
  int (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char* suffix);
  int (*finalize)();
  const char* (*get_env)(const char* name);
};

struct EnvV2 {
  const char* name;
  int (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char* suffix, Logger logger);
  int (*finalize)();
  const char* (*get_env)(const char* name);
};

static_assert(sizeof(EnvV1) == 32 && sizeof(EnvV2) == 32);

}  // namespace diapason::plugin::abi
