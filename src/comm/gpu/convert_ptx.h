#pragma once

#include <string>

namespace diapason::comm::gpu {

// The conversions between f32 and the narrower wire types as PTX, the portable assembly that the
// driver compiles for the installed GPU. The kernels are f32_to_bf16, bf16_to_f32, f32_to_f16 and
// f16_to_f32; each takes (out, in, count) and may be launched with any grid.
std::string ConvertPtx();

}  // namespace diapason::comm::gpu
