#pragma once

#include "diapason/comm.h"

namespace diapason::comm::nccl {

// The library's numbers for data types and reductions; -1 if it has none.
inline int NcclType(DataType type) {
  switch (type) {
    case DataType::kI8:
      return 0;
    case DataType::kU8:
      return 1;
    case DataType::kI32:
      return 2;
    case DataType::kI64:
      return 4;
    case DataType::kF16:
      return 6;
    case DataType::kF32:
      return 7;
    case DataType::kF64:
      return 8;
    case DataType::kBf16:
      return 9;
  }
  return -1;
}

inline int NcclReduce(ReduceOp reduce) {
  switch (reduce) {
    case ReduceOp::kSum:
      return 0;
    case ReduceOp::kProd:
      return 1;
    case ReduceOp::kMax:
      return 2;
    case ReduceOp::kMin:
      return 3;
    case ReduceOp::kAvg:
      return 4;
  }
  return -1;
}

}  // namespace diapason::comm::nccl
