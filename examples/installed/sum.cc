// The sum of all ranks' numbers, on the backend that the machine has:
//
//   diapason launch -n 4 -- ./sum
#include <cstdio>

#include "diapason/comm.h"

int main() {
  auto group = diapason::Group::Create();
  if (!group.ok()) {
    std::fprintf(stderr, "sum: %s\n", group.status().message().c_str());
    return 1;
  }
  const float mine = static_cast<float>(group.value()->rank() + 1);
  float sum = 0;
  const diapason::Status status =
      group.value()->AllReduce(&mine, &sum, 1, diapason::DataType::kF32);
  if (!status.ok()) {
    std::fprintf(stderr, "sum: %s\n", status.message().c_str());
    return 1;
  }
  if (group.value()->rank() == 0) {
    std::printf("%s, %d ranks: %g\n", group.value()->backend().c_str(), group.value()->size(),
                static_cast<double>(sum));
  }
  return 0;
}
