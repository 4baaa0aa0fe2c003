#include <stdlib.h>
// setenv("NCCL_ALGO", "Foo", 1);
int main() {
  setenv("NCCL_DEBUG", "INFO", 1);
  setenv("NCCL_LAUNCH_MOD", "GROUP", 0);
  const char* ring = getenv("NCCL_PRIVATE");
  return ring != nullptr;
}
