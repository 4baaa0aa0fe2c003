#pragma once

namespace diapason::comm::gpu {

// A kernel that only computes, for measuring what collectives cost beside compute: so many rounds
// of 16 multiply-adds a thread, nothing but registers touched. It takes one 32-bit argument, the
// number of rounds, and may be launched with any grid.
inline constexpr char kComputeKernel[] = "diapason_compute";
inline constexpr unsigned kComputeThreads = 256;  // of a block
// Two blocks on every multiprocessor: all of them are busy, and there is room for a collective's.
inline constexpr unsigned kComputeBlocks = 2;

// For NVIDIA's driver, which compiles it for whatever GPU is there.
const char* ComputePtx();
// For AMD's compiler at run time.
const char* ComputeHip();

}  // namespace diapason::comm::gpu
