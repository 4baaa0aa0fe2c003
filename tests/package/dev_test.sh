#!/usr/bin/env bash
# dev_test.sh SOURCE: ./dev on a machine that is not Debian names everything that CMake wants.
set -euo pipefail
source=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/package/common.sh
. "$here/common.sh"

# A PATH on which there is nothing but what the script itself needs.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for program in bash env dirname cat grep; do
  ln -s "$(command -v "$program")" "$folder/$program"
done
status=0
said=$(env -i PATH="$folder" bash "$source/dev" build 2>&1) || status=$?
[ "$status" -eq 1 ] || fail "./dev build without a compiler ended with $status: $said"

# Everything that CMake does not do without, by the name that CMake has for it.
mapfile -t wanted < <(grep -rhoE 'find_package\([A-Za-z0-9_]+[^)]*' "$source/CMakeLists.txt" "$source/src" --include=CMakeLists.txt |
  sed -nE 's/find_package\(([A-Za-z0-9_]+).*/\1/p' | grep -vx Threads | sort -u)
[ ${#wanted[@]} -ge 5 ] || fail "CMakeLists.txt wants ${wanted[*]} only"
for name in "${wanted[@]}" libhiredis.a g++ cmake ninja python3; do
  grep -qF -- "$name" <<<"$said" || fail "./dev does not name $name: $said"
done
say "fine: ${wanted[*]}"
