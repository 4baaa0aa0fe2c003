# shellcheck shell=bash
# For scripts that source it: starts a Slurm of one machine with four virtual nodes, n1 to n4, and takes it down when
# the script ends; exits with 77 where there is none. Then `expect` runs a command, and $failures counts.
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
# expect NAME STATUS TEXT COMMAND...: exit status 0 or not (!0), and TEXT in the output: an expression, or one per line.
expect() {
  local name=$1 wanted=$2 text=$3 output status line missing=
  shift 3
  output=$(timeout 600 "$@" 2>&1)
  status=$?
  while read -r line; do
    grep -Eq "$line" <<<"$output" || missing=yes
  done <<<"$text"
  if { [ "$wanted" = 0 ] && [ $status -ne 0 ]; } || { [ "$wanted" = "!0" ] && [ $status -eq 0 ]; } ||
    [ $status -eq 124 ] || [ -n "$missing" ]; then
    failures=$((failures + 1))
    printf 'FAIL %s: exit status %s, expected %s and "%s"; the output ends:\n%s\n' \
      "$name" "$status" "$wanted" "$text" "$(tail -n 15 <<<"$output")"
  else
    echo "ok   $name"
  fi
}
