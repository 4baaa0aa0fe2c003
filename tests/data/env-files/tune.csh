#!/bin/csh
setenv NCCL_DEBUG INFO
setenv NCCL_IB_DISABLE no
./run
