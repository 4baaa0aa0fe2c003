#!/bin/bash
mpirun -np 16 --hostfile hosts \
  --mca btl_tcp_if_include eth0 \
  -x NCCL_DEBUG=WARN -x NCCL_IB_GID_INDEX \
  -x NCCL_NET_GDR_LEVEL=PHB \
  -x NCCL_IB_TC=106 -x NCCL_IB_SL=3 -x NCCL_IB_RETRY_CNT=20 \
  -x PATH \
  ./train
