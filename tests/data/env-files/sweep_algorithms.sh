#!/bin/bash
NCCL_TESTS_DIR=${NCCL_TESTS_DIR:-/opt/nccl-tests/build}
for algo in Ring Tree; do
  for proto in LL LL128 Simple; do
    NCCL_ALGO=$algo NCCL_PROTO=$proto "$NCCL_TESTS_DIR/all_reduce_perf" -b 8 -e 1G -f 2 -g 8
  done
done
NCCL_ALGO=Tree NCCL_IB_DISABLE=1 ./bench first
NCCL_IB_HCA=mlx5_2 ./bench second
