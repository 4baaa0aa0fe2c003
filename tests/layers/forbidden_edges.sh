#!/usr/bin/env bash
# Configuring must fail when a room uses one it may not know: by declaration, and by #include; and so
# for the corners of a room.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$root"/{CMakeLists.txt,VERSION,cmake,src,include,bench,examples,clusters,targets} "$work"

configure() { # what must be said
  if cmake -S "$work" -B "$work/build" -G Ninja -DBUILD_TESTING=OFF >"$work/log" 2>&1; then
    echo "configuring went through; expected: $1"
    exit 1
  fi
  # CMake wraps its messages.
  tr -s '\n ' ' ' <"$work/log" | grep -q "$1" || { cat "$work/log"; echo "expected: $1"; exit 1; }
}

cmake -S "$work" -B "$work/build" -G Ninja -DBUILD_TESTING=OFF >/dev/null

echo '#include "policy/policy.h"' >>"$work/src/base/text.cc"
configure "forbidden edge: .*src/base/text.cc includes a header of 'policy'"
sed -i '$d' "$work/src/base/text.cc"

echo '#include "dataset/store.h"' >>"$work/src/comm/backends/sim/cluster.cc"
configure "forbidden edge: .*backends/sim/cluster.cc includes a header of 'dataset'"
sed -i '$d' "$work/src/comm/backends/sim/cluster.cc"

echo '#include "advise/logs/facts.h"' >>"$work/src/knobs/check.cc"
configure "forbidden edge: .*advise/knobs/check.cc includes a header of 'advise/logs'"
sed -i '$d' "$work/src/knobs/check.cc"

sed -i 's/NAME domain/NAME domain USES policy/' "$work/src/domain/CMakeLists.txt"
configure "forbidden edge: room 'domain' may not use 'policy'"
echo "forbidden edges are refused"
