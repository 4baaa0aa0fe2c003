#!/usr/bin/env bash
# fresh.sh [COMMAND...]: from a machine without our packages to the first table. Clones this tree into a
# Debian that has nothing but its minimum, runs ./dev COMMAND there (run tune by default), and says what
# took how long. Needs root, debootstrap, git, and the mirror of this machine's own apt.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/package/common.sh
. "$here/../tests/package/common.sh"
[ $# -gt 0 ] || set -- run tune

# Mounts and processes of the second call are its own, and end with it.
if [ "${INSIDE:-}" != yes ]; then
  [ "$(id -u)" -eq 0 ] || skip "only root may make another root"
  unshare --mount true 2>/dev/null || skip "this place allows no mounts"
  folder=$(mktemp -d)
  trap 'rm -rf --one-file-system "$folder"' EXIT
  INSIDE=yes SCRATCH=$folder unshare --mount --pid --fork --kill-child "$0" "$@"
  exit
fi

root=$SCRATCH/root
say "making a bare Debian (not counted)"
bare_debian "$root" "$SCRATCH/log"
mount_debian "$root"
git clone -q --depth 1 "file://$(git -C "$here" rev-parse --show-toplevel)" "$root/diapason"
packages=$(enter_debian "$root" 60 dpkg-query -W | wc -l)
say "$packages packages there; $(nproc) cores; now: ./dev $*"

# Every line with the second at which it came.
SECONDS=0
step() { while IFS= read -r line; do printf '%5d s  %s\n' "$SECONDS" "$line"; done; }
status=0
enter_debian "$root" 1800 sh -c 'cd /diapason && ./dev "$@"' dev "$@" 2>&1 | step || status=$?
echo "from nothing to the end of ./dev $*: $SECONDS s on $(nproc) cores," \
     "$(($(enter_debian "$root" 60 dpkg-query -W | wc -l) - packages)) packages installed"
exit "$status"
