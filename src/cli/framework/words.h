#pragma once

#include <string>
#include <vector>

namespace diapason::cli {

// The names that completion offers, and --help shows, for options that take one.
inline std::vector<std::string> TunedCollectives() {
  return {"allreduce", "allgather", "reducescatter", "broadcast", "reduce"};
}
inline std::vector<std::string> MeasuredCollectives() {
  return {"allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall", "sendrecv"};
}
inline std::vector<std::string> BackendWords() {
  return {"auto", "nccl", "rccl", "gloo", "mpi", "sim"};
}
inline std::vector<std::string> LibraryWords() { return {"nccl", "rccl", "gloo", "openmpi"}; }
inline std::vector<std::string> NcclOrRccl() { return {"nccl", "rccl"}; }
inline std::vector<std::string> DataTypeWords() {
  return {"float", "double", "half", "bfloat16", "int8", "uint8", "int32", "int64"};
}

// Syntax of options that take several sizes.
inline constexpr char kSizesText[] = "a list 1K,8K,1M or a range 1K:8M, 1K:8M:x4, 1M:8M:+1M";

}  // namespace diapason::cli
