#!/bin/bash
export NCCL_TIMEOUT=1800
export NCCL_NVLINK_DISABLE=1
export NCCL_LL_THRESHOLD=0
python train.py
