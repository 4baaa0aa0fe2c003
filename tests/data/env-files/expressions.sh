#!/bin/bash
export NCCL_SOCKET_IFNAME=$(ip route | awk '/default/ {print $5}')
export NCCL_IB_HCA=`ibdev2netdev | cut -d" " -f1 | paste -sd,`
export NCCL_DEBUG_FILE=/logs/nccl.${SLURM_PROCID}.log
export NCCL_BUFFSIZE=$((8 * 1024 * 1024))
export NCCL_NTHREADS=${THREADS:-abc}
export NCCL_ALGOS=$ALGO
export NCCL_DEBUG=$LEVEL
srun python train.py
