#include "comm/gpu/convert_ptx.h"

#include "base/text.h"

namespace diapason::comm::gpu {
namespace {

// The first GPU with tensor cores is enough; newer GPUs accept it as well.
constexpr char kHeader[] = R"(
.version 6.0
.target sm_70
.address_size 64
)";

// One element per step, from this thread's own index on in steps of the whole grid. %from and %to
// are the addresses of element %i; the kernel's body is inserted in the middle.
constexpr char kKernel[] = R"(
.visible .entry {}(.param .u64 out, .param .u64 in, .param .u64 count)
{{
  .reg .pred %done, %nan;
  .reg .b16 %narrow;
  .reg .f32 %value;
  .reg .b32 %thread, %threads, %block, %blocks, %bits, %kept, %sum;
  .reg .b64 %to0, %from0, %n, %i, %step, %to, %from;
  ld.param.u64 %to0, [out];
  ld.param.u64 %from0, [in];
  ld.param.u64 %n, [count];
  cvta.to.global.u64 %to0, %to0;
  cvta.to.global.u64 %from0, %from0;
  mov.u32 %thread, %tid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %blocks, %nctaid.x;
  mul.wide.u32 %i, %block, %threads;
  cvt.u64.u32 %step, %thread;
  add.u64 %i, %i, %step;
  mul.wide.u32 %step, %blocks, %threads;
NEXT:
  setp.ge.u64 %done, %i, %n;
  @%done bra END;
  shl.b64 %from, %i, {};
  add.u64 %from, %from0, %from;
  shl.b64 %to, %i, {};
  add.u64 %to, %to0, %to;
{}  add.u64 %i, %i, %step;
  bra NEXT;
END:
  ret;
}}
)";

// In integers, because only newer GPUs have an instruction for it. To round to nearest even, half a
// unit of the last kept place less one is added, and one more if that place is odd. NaNs are
// handled separately: the addition could carry one into infinity.
constexpr char kNarrowBf16[] = R"(  ld.global.b32 %bits, [%from];
  shr.u32 %kept, %bits, 16;
  and.b32 %sum, %kept, 1;
  add.u32 %sum, %sum, 0x7fff;
  add.u32 %sum, %sum, %bits;
  shr.u32 %sum, %sum, 16;
  or.b32 %kept, %kept, 0x40;
  and.b32 %bits, %bits, 0x7fffffff;
  setp.gt.u32 %nan, %bits, 0x7f800000;
  selp.b32 %sum, %kept, %sum, %nan;
  cvt.u16.u32 %narrow, %sum;
  st.global.b16 [%to], %narrow;
)";
constexpr char kWidenBf16[] = R"(  ld.global.b16 %narrow, [%from];
  cvt.u32.u16 %bits, %narrow;
  shl.b32 %bits, %bits, 16;
  st.global.b32 [%to], %bits;
)";
constexpr char kNarrowF16[] = R"(  ld.global.f32 %value, [%from];
  cvt.rn.f16.f32 %narrow, %value;
  st.global.b16 [%to], %narrow;
)";
constexpr char kWidenF16[] = R"(  ld.global.b16 %narrow, [%from];
  cvt.f32.f16 %value, %narrow;
  st.global.f32 [%to], %value;
)";

constexpr int kWideShift = 2;
constexpr int kNarrowShift = 1;

}  // namespace

std::string ConvertPtx() {
  return kHeader + Format(kKernel, "f32_to_bf16", kWideShift, kNarrowShift, kNarrowBf16) +
         Format(kKernel, "bf16_to_f32", kNarrowShift, kWideShift, kWidenBf16) +
         Format(kKernel, "f32_to_f16", kWideShift, kNarrowShift, kNarrowF16) +
         Format(kKernel, "f16_to_f32", kNarrowShift, kWideShift, kWidenF16);
}

}  // namespace diapason::comm::gpu
