#pragma once

namespace diapason::comm::gpu {

// A kernel that only computes, for measuring collectives beside compute: each thread does rounds of
// 16 multiply-adds in registers. It takes one 32-bit argument, the number of rounds, and may be
// launched with any grid.
inline constexpr char kComputeKernel[] = "diapason_compute";
inline constexpr unsigned kComputeThreads = 256;  // of a block
// Two blocks per multiprocessor: all of them are busy, and a collective's blocks still fit.
inline constexpr unsigned kComputeBlocks = 2;

// PTX, which NVIDIA's driver compiles for the installed GPU.
const char* ComputePtx();
// Source for AMD's run-time compiler.
const char* ComputeHip();

}  // namespace diapason::comm::gpu
