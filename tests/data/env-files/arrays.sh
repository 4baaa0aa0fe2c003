#!/bin/bash
MPI_ARGS=(
  -x NCCL_DEBUG=INFO        # a comment
  -x NCCL_IB_DISABLE=false
  -x LD_LIBRARY_PATH
)
MPI_ARGS+=(-x NCCL_CROSS_NIC=3)
declare -A VARS=([NCCL_SOCKET_IFNAME]=eth0 [NCCL_DEBUG_SUBSYS]=INIT)
mpirun "${MPI_ARGS[@]}" ./app
