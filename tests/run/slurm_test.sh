#!/usr/bin/env bash
# slurm_test.sh TOOL RANK: `diapason run` before srun, on a library that is played. 77: there is no Slurm here.
set -uo pipefail
tool=$1
rank=$2
# shellcheck source=tests/slurm/one_machine.sh
. "$(dirname "$0")/../slurm/one_machine.sh"

echo 'allreduce,0,1073741824,tree,simple,1,-1,-1,-1,-1' >"$work/policy.conf"
# Open files and folders of the ranks are those of this machine: its nodes are virtual.
cd "$work" || die "no folder"
run=("$tool" run --policy policy.conf)
srun=(srun --overcommit --mpi=none)
agreed='agreed  yes: 2 ranks, 300 calls'

expect "two tasks" 0 "$agreed" "${run[@]}" -- "${srun[@]}" -n2 "$rank" board.1
expect "two nodes" 0 "$agreed" "${run[@]}" -- "${srun[@]}" -N2 -n2 "$rank" board.2
expect "--export=NONE" 0 "$agreed" "${run[@]}" -- "${srun[@]}" --export=NONE -n2 "$rank" board.3
expect "--export=A" 0 "$agreed" "${run[@]}" -- "${srun[@]}" --export A -n2 "$rank" board.4
expect "SLURM_EXPORT_ENV" 0 "$agreed" env SLURM_EXPORT_ENV=NONE "${run[@]}" -- "${srun[@]}" -n2 "$rank" board.5
# Without us nothing arrives there.
expect "nothing arrives by itself" 0 "no plugin" \
  env NCCL_TUNER_PLUGIN=x "${srun[@]}" --export=NONE -n1 "$rank" board.6
expect "behind other programs" 0 "$agreed" \
  "${run[@]}" -- env A=1 timeout 600 bash -c "cd $work && ${srun[*]} --export=NONE -n2 $rank board.7"
expect "behind salloc" 0 "$agreed" "${run[@]}" -- salloc -N2 "${srun[@]}" -N2 -n2 "$rank" board.8
expect "a task that fails" "!0" "chosen  allreduce 512KiB: tree/simple" \
  "${run[@]}" -- "${srun[@]}" -n2 "$rank" board.9 --exit 3
# Ranks that could not agree leave all calls to the library, and say why instead.
learned='chosen  .*at the end of 20000 calls
agreed  yes: 2 ranks, 20000 calls'
mkdir "$work/store"
expect "learning on two nodes, with a store that run serves" 0 "$learned" env DIAPASON_REWARD=gpu \
  "$tool" run --learn -- "${srun[@]}" -N2 -n2 "$rank" board.10 --calls 20000
expect "learning on two nodes, with a store in a folder" 0 "$learned" env DIAPASON_REWARD=gpu \
  "$tool" run --learn --store "file:$work/store" -- "${srun[@]}" -N2 -n2 "$rank" board.11 --calls 20000

if [ $failures -ne 0 ]; then
  echo "run under slurm: $failures failures"
  exit 1
fi
echo "run under slurm: fine"
