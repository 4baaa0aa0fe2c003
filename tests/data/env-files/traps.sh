#!/bin/bash
# NCCL_IB_DISABLE=true does not work
: "${NCCL_DEBUG:=INFO}"
[ -n "$NCCL_TOPO_FILE" ] && echo "topology $NCCL_TOPO_FILE"
if [[ $NCCL_ALGO == Ring && $NCCL_PROTO = LL ]]; then echo slow; fi
cmake -DNCCL_ROOT=/opt/nccl -DNCCL_INCLUDE_DIR=/opt/nccl/include ..
make -j NCCL_HOME=/opt/nccl NCCL_WEIRD=1
sed -i 's/NCCL_DEBUG=INFO/NCCL_DEBUG=FOO/' env.sh
export NCCL_SOCKET_IFNAME==eth0
export NCCL_IB_HCA=^mlx5_3,mlx5_4
unset NCCL_P2P_LEVEL
