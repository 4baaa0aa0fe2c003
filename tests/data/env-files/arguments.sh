#!/bin/bash
NCCL_OPTS="-x NCCL_DEBUG=INFO -x NCCL_IB_SL=1 -x NCCL_ALGO=^Treee"
NCCL_PARAMS=" \
  -x NCCL_IB_TIMEOUT=23 \
  -x NCCL_IB_RETRY_CNT=9"
export NCCL_DEBUG_FILE="${NCCL_DEBUG_FILE:-}"
alias t='NCCL_NTHREADS=x ./x'
mpirun $NCCL_OPTS $NCCL_PARAMS ./all_reduce_perf
