#!/usr/bin/env bash
# comm.h against calling Gloo and Open MPI directly. Usage: comm.sh FOLDER_OF_THE_PROGRAMS
set -euo pipefail
bin=$1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
limit() { timeout --kill-after=10 300 "$@"; }

echo "all_reduce of f32, 2 ranks, interleaved with direct calls; times are lower quartiles"
limit "$bin/diapason" launch -n 2 -- "$bin/bench_comm" gloo
limit mpirun -n 2 "$bin/bench_comm" mpi

# Instructions: the difference between 101000 and 1000 calls, so that start and end cancel out.
instructions() {
  limit mpirun -n 1 valgrind --tool=callgrind --callgrind-out-file=/dev/null \
    "$bin/bench_comm" count "$1" "$2" 2>&1 | sed -n 's/.*Collected : *//p'
}
per_call() { echo $(( ($(instructions "$1" 101000) - $(instructions "$1" 1000)) / 100000 )); }
direct=$(per_call direct)
ours=$(per_call comm)
echo "mpi   1KiB, 1 rank: $direct instructions a call directly, $ours through comm.h: $((ours - direct)) added"

limit "$bin/diapason" launch -n 4 -- "$bin/bench_comm" create
