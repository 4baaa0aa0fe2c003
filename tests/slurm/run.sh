#!/usr/bin/env bash
# run.sh CONFORMANCE VICTIM: runs the communicator's programs under a Slurm of one machine. 77: there is no Slurm here.
set -uo pipefail
conformance=$1
victim=$2

# shellcheck source=tests/slurm/one_machine.sh
. "$(dirname "$0")/one_machine.sh"

usable() { "$conformance" --backend "$1" --probe >/dev/null 2>&1; }
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT
run=(srun --overcommit --mpi=none)
fine() { echo "conformance: backend $1, $2 ranks, [0-9]+ checks, 0 failures"; }
if usable gloo; then
  expect "gloo, two tasks" 0 "$(fine gloo 2)" \
    "${run[@]}" -n2 "$conformance" --backend gloo --quick
  # Nobody but Slurm knows the names of virtual nodes.
  expect "gloo, nodes that cannot be found" "!0" "n1" \
    "${run[@]}" -N2 -n2 "$conformance" --backend gloo --quick --seconds 5
  expect "gloo, a task on each of four nodes" 0 "$(fine gloo 4)" \
    env MASTER_ADDR=127.0.0.1 "${run[@]}" -N4 -n4 "$conformance" --backend gloo --quick
  expect "auto, three tasks on two nodes" 0 "conformance: backend [a-z]+, 3 ranks, .* 0 failures" \
    env MASTER_ADDR=127.0.0.1 "${run[@]}" -N2 -n3 "$conformance" --backend auto --quick \
    --filter split
  # Two jobs at once on one host must not meet.
  "${run[@]}" -n2 "$conformance" --backend gloo --quick --filter reductions >"$work/beside" 2>&1 &
  beside=$!
  expect "gloo, two jobs at once: one" 0 "$(fine gloo 2)" \
    "${run[@]}" -n2 "$conformance" --backend gloo --quick --filter reductions
  wait "$beside"
  expect "gloo, two jobs at once: the other" 0 "$(fine gloo 2)" cat "$work/beside"
  # One task is killed in the middle; the others say who, and srun says that the step failed.
  # shellcheck disable=SC2016 # the task's own shell expands it
  expect "gloo, a failing rank" "!0" 'all_reduce number [0-9]+.*rank 2' \
    "${run[@]}" -n3 --kill-on-bad-exit=0 sh -c \
    'if [ "$SLURM_PROCID" = 2 ]; then steps="create kill"; else
       steps="create sleep=500 all_reduce=1048576"; fi
     exec "$0" --backend gloo --limit 120000 $steps' "$victim"
else
  echo "skipped: gloo is not usable here"
fi
if usable mpi && srun --mpi=list 2>&1 | grep -q pmix; then
  expect "mpi, two tasks" 0 "$(fine mpi 2)" \
    srun --overcommit --mpi=pmix -n2 "$conformance" --backend mpi --quick
  expect "mpi, a task on each of four nodes" 0 "$(fine mpi 4)" \
    srun --overcommit --mpi=pmix -N4 -n4 "$conformance" --backend mpi --quick --filter reductions
else
  echo "skipped: Open MPI or Slurm's pmix is not usable here"
fi
if [ $failures -ne 0 ]; then
  echo "slurm: $failures failures"
  exit 1
fi
echo "slurm: fine"
