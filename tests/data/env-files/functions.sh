#!/bin/bash
use_tcp() {
  export NCCL_NET=Socket
  export NCCL_SOCKET_IFNAME=eth0
}
use_ib() {
  export NCCL_NET=IB
  export NCCL_IB_HCA=mlx5_0
  export NCCL_IB_QPS_PER_CONNECTION=4
}
use_"$1"
( export NCCL_IB_DISABLE=1; ./probe )
./run
