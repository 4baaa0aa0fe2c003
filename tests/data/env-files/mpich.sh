#!/bin/sh
mpiexec -genv NCCL_DEBUG INFO -genv NCCL_PROTO SIMPEL -env MPICH_GPU_SUPPORT_ENABLED 1 ./a.out
