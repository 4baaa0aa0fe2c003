#!/bin/bash
NCCL_SOCKET_IFNAME=ib0
NCCL_DEBUG=INFO
export NCCL_DEBUG
NCCL_IB_HCA=mlx5_0
docker run --rm -e NCCL_IB_HCA=$NCCL_IB_HCA image python train.py
