#!/bin/sh
# A store on a file system without space: an error that says so, and a file that stays whole.
#
#   full_disk.sh DIAPASON TABLE
#
# The limit on the size of files stands in for a full disk where nothing can be mounted.
set -eu
tool=$1
table=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$tool" data import --library rccl --store "$work/s.db" "$table" > /dev/null
before=$("$tool" data export "$work/s.db" | cksum)

# The same rows under another library are another run: they need as much space again.
if (ulimit -f 900; trap '' XFSZ; "$tool" data import --library nccl --store "$work/s.db" "$table") \
    > "$work/out" 2> "$work/err"; then
  echo "importing beyond the limit did not fail"
  cat "$work/out"
  exit 1
fi
grep -q "store '$work/s.db'" "$work/err" || { echo "the error does not name the store:"; cat "$work/err"; exit 1; }
after=$("$tool" data export "$work/s.db" | cksum)
[ "$before" = "$after" ] || { echo "the store changed"; exit 1; }
"$tool" data import --library nccl --store "$work/s.db" "$table" > /dev/null
echo "full_disk: the store stayed whole, and went on"
