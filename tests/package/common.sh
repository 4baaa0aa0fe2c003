# Sourced by the tests of this folder.
# shellcheck shell=bash
say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
fail() { say "FAILED: $*"; exit 1; }
skip() { say "skipped: $*"; exit 77; }

# expect TEXT COMMAND...: the command succeeds within its time and says TEXT somewhere. (A function bounds its
# own time: `timeout` cannot call it.)
expect() {
  local text=$1 output status=0 limit=(timeout 120)
  shift
  declare -F "$1" >/dev/null && limit=()
  output=$("${limit[@]}" "$@" 2>&1) || status=$?
  [ "$status" -eq 0 ] || fail "$* ended with $status: $output"
  grep -qF -- "$text" <<<"$output" || fail "$* does not say '$text' but: $output"
}
