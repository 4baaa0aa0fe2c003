#!/bin/bash
set -a
NCCL_SOCKET_IFNAME=eth0
NCCL_DEBUG=WARN
set +a
python train.py
