#!/bin/bash
LAUNCH="NCCL_DEBUG=INFO NCCL_P2P_LEVEL=PCI torchrun --nproc-per-node 4"
ssh node1 "export NCCL_SOCKET_IFNAME=eth1; cd /work && python worker.py"
bash -c 'NCCL_SHM_DISABLE=on ./test'
echo "Set NCCL_DEBUG=LOUD to see more"
grep -q "NCCL_DEBUG=LOUD" job.log && exit 1
echo "NCCL_IB_TIMEOUT=99" >> /etc/nccl.conf
$LAUNCH train.py
