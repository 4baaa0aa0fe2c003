# Sourced by the tests of this folder.
# shellcheck shell=bash
say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
fail() { say "FAILED: $*"; exit 1; }
skip() { say "skipped: $*"; exit 77; }

# expect TEXT COMMAND...: the command succeeds within its time and says TEXT somewhere. (A function bounds its
# own time: `timeout` cannot call it.)
expect() {
  local text=$1 output status=0 limit=(timeout 1200)
  shift
  declare -F "$1" >/dev/null && limit=()
  output=$("${limit[@]}" "$@" 2>&1) || status=$?
  [ "$status" -eq 0 ] || fail "$* ended with $status: $output"
  grep -qF -- "$text" <<<"$output" || fail "$* does not say '$text' but: $output"
}

# bare_debian FOLDER LOG: a Debian with its minimum, from the mirror of this machine's own apt, by debootstrap.
bare_debian() {
  local root=$1 log=$2 mirror extra=()
  # Debian's own archive, as apt here knows it; the security archive is not a whole one.
  mirror=$(apt-get indextargets --format "\$(REPO_URI) \$(RELEASE) \$(COMPONENT)" 'Identifier: Packages' |
    awk '$2 == "bookworm" && $3 == "main" { print $1; exit }')
  [ -n "$mirror" ] || skip "apt knows no mirror of Debian bookworm here"
  [[ "$mirror" == https:* ]] && extra=(--include=ca-certificates)
  timeout 600 debootstrap --variant=minbase "${extra[@]}" bookworm "$root" "$mirror" >"$log" 2>&1 ||
    skip "debootstrap failed: $(tail -n 3 "$log")"
  # How this machine reaches the mirror (a proxy, say).
  apt-config dump | grep '^Acquire::[a-z]*::Proxy' >"$root/etc/apt/apt.conf.d/99proxy" || true
  # debootstrap leaves this to whoever boots it; every machine and container has it.
  echo '127.0.0.1 localhost' >"$root/etc/hosts"
}
# enter_debian ROOT SECONDS COMMAND...: runs it there, with a clean environment.
enter_debian() {
  timeout -k 10 "$2" chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive "${@:3}"
}
mount_debian() {
  mount -t proc proc "$1/proc"
  mkdir -p "$1/dev/shm"
  mount -t tmpfs tmpfs "$1/dev/shm"
}
