#!/usr/bin/env bash
# slurm_recipes_test.sh SOURCE TOOL RANK: the batch scripts of packaging/slurm as jobs of a real Slurm, on a library that is
# played. Only their request for GPUs, which this Slurm does not have, is taken out. 77: there is no Slurm here.
set -uo pipefail
source=$1
tool=$2
rank=$3
# shellcheck source=tests/slurm/one_machine.sh
. "$(dirname "$0")/../slurm/one_machine.sh"

cd "$work" || die "no folder"
echo 'allreduce,0,1073741824,tree,simple,1,-1,-1,-1,-1' >policy.conf
echo 'nonsense' >wrong.conf
mkdir programs
ln -s "$tool" programs/diapason
# One per node, as torchrun; it starts one rank, whose number is that of its node.
cat >programs/torchrun <<'TEXT'
#!/bin/bash
while [[ ${1:-} == --* ]]; do echo "torchrun: $1 $2"; shift 2; done
RANK=$SLURM_NODEID WORLD_SIZE=$SLURM_JOB_NUM_NODES LOCAL_RANK=0 exec "$@"
TEXT
chmod +x programs/torchrun
export PATH=$work/programs:$PATH

# submit SCRIPT ARGUMENTS...: the status of the job, and what it wrote.
cat >programs/submit <<TEXT
#!/bin/bash
sed '/^#SBATCH --gpus-per-node/d' "$source/packaging/slurm/\$1" >"\$1"
status=0
sbatch --quiet --wait --nodes=2 --ntasks-per-node=1 --output=job.log "\$@" || status=\$?
cat job.log
exit \$status
TEXT
chmod +x programs/submit

agreed='agreed  yes: 2 ranks, 300 calls'
expect "train.sbatch" 0 "$agreed" submit train.sbatch "$rank" "$work/board.1"
expect "train.sbatch keeps the job's status" "!0" "chosen  allreduce 512KiB: tree/simple" \
  submit train.sbatch "$rank" "$work/board.2" --exit 3
POLICY=wrong.conf expect "train.sbatch with a wrong policy" "!0" "wrong.conf:1" submit train.sbatch "$rank" "$work/board.3"
[ ! -e board.3 ] || die "the job began with a wrong policy"
expect "torchrun.sbatch" 0 "$agreed" submit torchrun.sbatch "$rank" "$work/board.4"
expect "torchrun.sbatch: the same rendezvous on both nodes" 0 '^torchrun: --rdzv-endpoint n1:2[0-9]{4}$' cat job.log
expect "pyxis.sbatch wants an image" "!0" "set IMAGE" submit pyxis.sbatch "$rank" "$work/board.5"
# Neither pyxis nor enroot is here: srun refuses the option, and with it what the script and `run` add.
IMAGE=x.sqsh expect "pyxis.sbatch" "!0" "unrecognized option '--container-" submit pyxis.sbatch "$rank" "$work/board.6"
# The budget is over before a job without iterations shows any: `tune` says so, and nothing is left running.
BUDGET=10s expect "tune.sbatch" "!0" "diapason: error:" submit tune.sbatch "$rank" "$work/board.7"
[ -z "$(squeue -h)" ] || die "jobs are left: $(squeue)"

if [ $failures -ne 0 ]; then
  echo "batch scripts: $failures failures"
  exit 1
fi
echo "batch scripts: fine"
