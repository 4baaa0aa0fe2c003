#!/usr/bin/env bash
# clean_root_test.sh PACKAGES CACHE: installs the packages of the folder PACKAGES into a Debian that has nothing but
# its minimum, uses them there, and removes them again. The Debian comes from the mirror of this machine's own
# apt, by debootstrap, and is kept in the folder CACHE with all that the packages depend on: a second
# run needs no network. Needs root. Nothing outside CACHE and a temporary folder is written.
set -euo pipefail
packages=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/package/common.sh
. "$here/common.sh"

# Mounts and processes of the second call are its own, and end with it.
if [ "${INSIDE:-}" != yes ]; then
  [ "$(id -u)" -eq 0 ] || skip "only root may make another root"
  for tool in debootstrap unshare chroot zstd; do
    command -v "$tool" >/dev/null || skip "$tool is missing"
  done
  compgen -G "$packages/diapason_*.deb" >/dev/null || fail "$packages has no packages; ./dev package makes them"
  mkdir -p "$2"
  folder=$(mktemp -d)
  trap 'rm -rf --one-file-system "$folder"' EXIT
  unshare --mount true 2>/dev/null || skip "this place allows no mounts"
  status=0
  INSIDE=yes SCRATCH=$folder timeout -k 10 900 unshare --mount --pid --fork --kill-child "$0" "$packages" "$2" ||
    status=$?
  exit "$status"
fi

cache=$(realpath "$2")/bookworm-$(dpkg --print-architecture).tar.zst
root=$SCRATCH/root
recommended="libgloo0 libxgboost0 python3"

inside() { enter_debian "$root" 300 "$@"; }
quietly() { "$@" >"$SCRATCH/log" 2>&1 || fail "$*: $(tail -n 20 "$SCRATCH/log")"; }

if [ ! -f "$cache" ]; then
  say "debootstrap (once; kept in $cache)"
  bare_debian "$root" "$SCRATCH/log"
  mount_debian "$root"
  # shellcheck disable=SC2086
  quietly inside apt-get install -y -qq --no-install-recommends --download-only $recommended
  umount "$root/dev/shm" "$root/proc"
  tar -C "$root" -c . | zstd -q -3 -T0 >"$cache.new"
  mv "$cache.new" "$cache"
else
  mkdir "$root"
  zstd -qdc "$cache" | tar -C "$root" -x
fi
mount_debian "$root"
inside test -e /proc/self/exe || fail "/proc is not mounted in $root"
mkdir "$root/packages"
cp "$packages"/*.deb "$root/packages/"

# All but what dpkg, apt and ldconfig keep for themselves.
files() {
  (cd "$root" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./var/lib/dpkg -o -path ./var/lib/apt \
    -o -path ./var/cache -o -path ./var/log -o -path ./tmp \) -prune -o -print | LC_ALL=C sort)
}

say "alone: no Gloo, no MPI, no XGBoost, no Python, no network"
files >"$SCRATCH/before"
quietly inside sh -c 'dpkg -i /packages/diapason_*.deb'
version=$(dpkg-deb -f "$packages"/diapason_*.deb Version)
expect "$version" inside diapason --version
policy=/usr/share/doc/diapason/examples/workload_aware_8gpu.conf
expect "tree/simple" inside diapason ask --policy "$policy" --sizes 1M
expect "libgloo.so.0: cannot open" inside sh -c 'diapason backends || test $? -eq 1'
expect "0 OK" inside diapason bench all_reduce --backend sim -g 8 -b 1M -e 1M
quietly inside dpkg -P diapason
files | diff "$SCRATCH/before" - >&2 || fail "this differs after the package has gone"

say "with what it recommends"
plan=$(inside sh -c 'apt-get install -s /packages/*.deb')
for name in diapason libdiapason-dev python3-diapason $recommended; do
  grep -q "^Inst $name " <<<"$plan" || fail "apt would not install $name: $plan"
done
! grep '^Inst .*mpi' <<<"$plan" || fail "apt would install Open MPI"
# (apt takes packages from a file only together with a network.)
# shellcheck disable=SC2086
quietly inside apt-get install -y -qq --no-download --no-install-recommends $recommended
quietly inside sh -c 'dpkg -i /packages/*.deb'
expect "yes" inside sh -c 'diapason backends | grep ^gloo'
expect "0 OK" inside diapason bench all_reduce --backend gloo -g 2 -b 1K -e 1K
expect "every sample is in /root/s.db" inside diapason sweep allreduce --backend gloo -g 2 --sizes 1K --budget 3s \
  --store /root/s.db
expect "allreduce" inside diapason data show /root/s.db
expect "NAME" inside sh -c 'gzip -dc /usr/share/man/man1/diapason.1.gz | tr -d "\""'
expect "$version" inside python3 -c 'import diapason; diapason.step(); print(diapason.__version__)'
expect "$version" inside python3 -c 'from importlib import metadata; print(metadata.version("diapason"))'
# Every name that NCCL and RCCL ask the loader for.
for name in lib{nccl,rccl}-{tuner,profiler,env}-diapason.so; do
  expect "$version" inside python3 -c 'import ctypes, sys
plugin = ctypes.CDLL(sys.argv[1])
plugin.diapason_version.restype = ctypes.c_char_p
print(plugin.diapason_version().decode())' "$name"
done
expect libdiapason-comm.so inside ldconfig -p
rm -r "$root"/root/s.db* "$root/packages"
quietly inside sh -c "apt-get purge -y -qq diapason libdiapason-dev python3-diapason"
if files | grep diapason >&2; then fail "these were left behind"; fi
! inside ldconfig -p | grep diapason || fail "the loader still knows of it"
say "fine"
