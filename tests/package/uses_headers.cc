// Compiled by headers_test.sh with every warning as an error: each way in which a program may fill
// in the structures of comm.h.
#include "diapason/comm.h"

int main() {
  const diapason::GroupOptions options{.backend = "sim", .rank = 0, .size = 1};
  auto group = diapason::Group::Create(options);
  if (!group.ok()) return 1;
  float in = 1;
  float out = 0;
  const diapason::Tensor tensor{.in = &in, .out = &out, .count = 1};
  const diapason::Call call{.operation = diapason::Operation::kAllReduce,
                            .tensors = {&tensor, 1},
                            .config = {.algorithm = 1}};
  const diapason::Call plain{diapason::Operation::kBroadcast, &in, &out, 1};
  return group.value()->Run(call).ok() && group.value()->Run(plain).ok() ? 0 : 1;
}
