#!/bin/bash
docker run -e NCCL_IB_DISABLE=1 image ./first
export NCCL_IB_HCA=mlx5_0
NCCL_NET=Socket ./second
python - <<PY
import os
os.environ["NCCL_PROTO"] = "LLL"
PY
