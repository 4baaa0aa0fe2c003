#!/bin/bash
if command -v nvidia-smi >/dev/null; then
  export NCCL_NVLS_ENABLE=0
else
  export HSA_NO_SCRATCH_RECLAIM=1
  export RCCL_MSCCL_ENABLE=0
fi
export NCCL_MIN_NCHANNELS=96
python train.py
