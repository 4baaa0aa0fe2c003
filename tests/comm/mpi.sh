#!/usr/bin/env bash
# mpi.sh RANKS PROGRAM ARGUMENTS...: the conformance program under mpirun; 77 where that cannot be.
set -euo pipefail
ranks=$1
shift
command -v mpirun >/dev/null || { echo "skipped: no mpirun on this machine"; exit 77; }
# Asked before: mpirun makes something else of exit status 77.
"$@" --probe || exit $?
# A port per job: several run at once. Below those that Linux gives to outgoing connections, of
# which the jobs beside this one have hundreds; and so that no two neighbours are 37 apart, which is
# where a second world listens. Two cores and seven ranks: who waits must give way.
exec mpirun --allow-run-as-root --oversubscribe -n "$ranks" \
  -x MASTER_PORT=$((10000 + $$ * 41 % 10000)) "$@"
