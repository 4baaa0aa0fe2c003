#!/usr/bin/env bash
# run.sh CONFORMANCE VICTIM: starts a Slurm of one machine with four virtual nodes, runs the
# communicator's programs under it, and takes everything down again. 77: there is no Slurm here.
set -uo pipefail
conformance=$1
victim=$2

skip() { echo "skipped: $*"; exit 77; }
PATH=$PATH:/usr/sbin:/sbin
for program in slurmctld slurmd srun munged; do
  command -v "$program" >/dev/null || skip "no $program (packages slurm-wlm and munge)"
done
[ "$(id -u)" -eq 0 ] || skip "starting a Slurm needs root"
id munge >/dev/null 2>&1 || skip "no user munge"

work=$(mktemp -d)
own_munge=
started=() # daemons of ours, by their pid files

# shellcheck disable=SC2317 # called by the trap
down() {
  local file pid
  trap - EXIT INT TERM
  scancel --state=RUNNING >/dev/null 2>&1
  for file in "${started[@]}"; do
    pid=$(cat "$file" 2>/dev/null) || continue
    kill "$pid" 2>/dev/null
    for _ in {1..50}; do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null
  done
  rm -rf "$work"
  [ -z "$own_munge" ] || rm -f "$own_munge"
}
trap down EXIT
trap 'exit 130' INT TERM

die() {
  echo "FAIL $*"
  tail -n 20 "$work"/*.log 2>/dev/null
  exit 1
}

# Munge with a key and a socket of our own: one that runs already is left alone.
umask 022
mkdir -p "$work/munge"
dd if=/dev/urandom of="$work/munge/key" bs=128 count=1 status=none
chown -R munge: "$work/munge"
chmod 0755 "$work" "$work/munge"
chmod 0400 "$work/munge/key"
socket=$work/munge/socket
runuser -u munge -- "$(command -v munged)" --key-file="$work/munge/key" --socket="$socket" \
  --pid-file="$work/munge/pid" --log-file="$work/munge/log" --seed-file="$work/munge/seed" \
  --num-threads=2 || die "munged does not start"
started+=("$work/munge/pid")

# Ports that nobody uses now, one after the other.
read -r first_port < <(python3 - <<'PYTHON'
import random, socket
while True:
    first = random.randrange(20000, 32000)
    probes = [socket.socket() for _ in range(6)]
    try:
        for offset, probe in enumerate(probes):
            probe.bind(("", first + offset))
    except OSError:
        continue
    finally:
        for probe in probes:
            probe.close()
    print(first)
    break
PYTHON
)

host=$(hostname -s)
mkdir -p "$work/state" "$work"/spool/n{1..4} "$work"/tmp/n{1..4}
cat >"$work/slurm.conf" <<CONF
ClusterName=diapason
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$first_port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool/%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd-%n.log
TmpFS=$work/tmp/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=60
KillWait=2
InactiveLimit=0
NodeName=n[1-4] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((first_port + 1))-$((first_port + 4))] CPUs=8 State=UNKNOWN
PartitionName=all Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
CONF
export SLURM_CONF=$work/slurm.conf
slurmctld -c || die "slurmctld does not start"
started+=("$work/slurmctld.pid")
for node in n1 n2 n3 n4; do
  slurmd -N "$node" || die "slurmd $node does not start"
  started+=("$work/slurmd-$node.pid")
done
ready=
for _ in {1..1500}; do
  if [ "$(sinfo -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l)" -eq 4 ]; then
    ready=yes
    break
  fi
  sleep 0.2
done
[ -n "$ready" ] || die "the nodes do not come up: $(sinfo 2>&1)"

failures=0
# expect NAME STATUS TEXT COMMAND...: exit status 0 or not (!0), and TEXT in the output.
expect() {
  local name=$1 wanted=$2 text=$3 output status
  shift 3
  output=$(timeout 600 "$@" 2>&1)
  status=$?
  if { [ "$wanted" = 0 ] && [ $status -ne 0 ]; } || { [ "$wanted" = "!0" ] && [ $status -eq 0 ]; } ||
    [ $status -eq 124 ] || ! grep -Eq "$text" <<<"$output"; then
    failures=$((failures + 1))
    printf 'FAIL %s: exit status %s, expected %s and "%s"; the output ends:\n%s\n' \
      "$name" "$status" "$wanted" "$text" "$(tail -n 15 <<<"$output")"
  else
    echo "ok   $name"
  fi
}
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
