#!/bin/sh
if [ -d /sys/class/infiniband ]; then
  export NCCL_IB_HCA=mlx5
  export NCCL_IB_GID_INDEX=3
elif [ "$CLOUD" = aws ]; then
  export FI_PROVIDER=efa FI_EFA_USE_DEVICE_RDMA=1
else
  export NCCL_IB_DISABLE=1
fi
case "$1" in
  debug) export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET ;;
  quiet) export NCCL_DEBUG=WARN ;;
esac
exec python main.py
