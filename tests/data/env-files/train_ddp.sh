#!/bin/bash
# Two nodes of eight GPUs.
set -euo pipefail
export NCCL_DEBUG=${NCCL_DEBUG:-WARN}
export NCCL_SOCKET_IFNAME=bond0   # the management network
export NCCL_IB_HCA="=mlx5_0:1,mlx5_1:1" NCCL_IB_TIMEOUT=22
export OMP_NUM_THREADS=8
nccl_args="--backend nccl"
torchrun --nnodes 2 --nproc-per-node 8 train.py ${nccl_args} "$@"
