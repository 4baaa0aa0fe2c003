#include "comm/gpu/compute_kernel.h"

namespace diapason::comm::gpu {

// Both do the same. x = x / 2 + 1 / 2 stays between its start and 1, so that the numbers stay
// normal for any number of rounds. They are never negative, but the compiler cannot know that: it
// must keep the arithmetic because of a store that never happens. Four independent chains fill the
// pipeline.
const char* ComputePtx() {
  return R"(
.version 6.0
.target sm_70
.address_size 64

.global .align 4 .f32 diapason_sink;

.visible .entry diapason_compute(.param .u32 rounds)
{
  .reg .pred %done, %never;
  .reg .f32 %a, %b, %c, %d, %half;
  .reg .b32 %left, %thread;
  ld.param.u32 %left, [rounds];
  mov.u32 %thread, %tid.x;
  mov.f32 %half, 0f3F000000;
  cvt.rn.f32.u32 %a, %thread;
  add.f32 %b, %a, %half;
  add.f32 %c, %b, %half;
  add.f32 %d, %c, %half;
NEXT:
  setp.eq.u32 %done, %left, 0;
  @%done bra END;
  fma.rn.f32 %a, %a, %half, %half;
  fma.rn.f32 %b, %b, %half, %half;
  fma.rn.f32 %c, %c, %half, %half;
  fma.rn.f32 %d, %d, %half, %half;
  fma.rn.f32 %a, %a, %half, %half;
  fma.rn.f32 %b, %b, %half, %half;
  fma.rn.f32 %c, %c, %half, %half;
  fma.rn.f32 %d, %d, %half, %half;
  fma.rn.f32 %a, %a, %half, %half;
  fma.rn.f32 %b, %b, %half, %half;
  fma.rn.f32 %c, %c, %half, %half;
  fma.rn.f32 %d, %d, %half, %half;
  fma.rn.f32 %a, %a, %half, %half;
  fma.rn.f32 %b, %b, %half, %half;
  fma.rn.f32 %c, %c, %half, %half;
  fma.rn.f32 %d, %d, %half, %half;
  sub.u32 %left, %left, 1;
  bra NEXT;
END:
  add.f32 %a, %a, %b;
  add.f32 %c, %c, %d;
  add.f32 %a, %a, %c;
  setp.lt.f32 %never, %a, 0f00000000;
  @%never st.global.f32 [diapason_sink], %a;
  ret;
}
)";
}

const char* ComputeHip() {
  return R"(
__device__ float diapason_sink;

extern "C" __global__ void diapason_compute(unsigned int rounds) {
  const float half = 0.5f;
  float a = static_cast<float>(threadIdx.x);
  float b = a + half;
  float c = b + half;
  float d = c + half;
  for (unsigned int left = rounds; left != 0; --left) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      a = __builtin_fmaf(a, half, half);
      b = __builtin_fmaf(b, half, half);
      c = __builtin_fmaf(c, half, half);
      d = __builtin_fmaf(d, half, half);
    }
  }
  const float sum = a + b + c + d;
  if (sum < 0.0f) diapason_sink = sum;
}
)";
}

}  // namespace diapason::comm::gpu
