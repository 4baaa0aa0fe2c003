#!/bin/bash
export NCCL_TEST_BIN=/opt/bin/all_reduce_perf
NCCL_VERSION=2.21.5
export NCCL_HOME=/usr/local/nccl-$NCCL_VERSION
export NCCL_TIMEOUT=1800
export LD_LIBRARY_PATH=$NCCL_HOME/lib:$LD_LIBRARY_PATH
mpirun -np 8 $NCCL_TEST_BIN -b 1M -e 1G
python train.py --dist-timeout $NCCL_TIMEOUT
