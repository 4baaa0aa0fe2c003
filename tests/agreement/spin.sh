#!/usr/bin/env bash
# Checks a Promela model with spin, and that each of its mutants is found. Usage: spin.sh MODEL.pml
set -euo pipefail
model=$(realpath "$1")
for tool in spin gcc; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed here"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

errors() { # [-DMUTANT...]: how many errors a full search finds
  rm -f pan*
  spin "$@" -a "$model" >spin.log 2>&1 || { cat spin.log >&2; return 1; }
  gcc -O2 -w -DSAFETY -DMEMLIM=2048 -o pan pan.c
  ./pan -m100000 >pan.log
  if grep -q -e 'max search depth too small' -e 'out of memory' -e 'MEMLIM bound' pan.log; then
    cat pan.log >&2
    return 1
  fi
  sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log
}

found=$(errors)
states=$(awk '/states, stored/ {print $1}' pan.log)
if [ "$found" != 0 ]; then
  cat pan.log
  echo "FAILED: the model has an error"
  exit 1
fi
echo "$(basename "$model"): no error in $states states"
mapfile -t mutants < <(grep -o '^ \*   -DMUTANT_[A-Z]*' "$model" | grep -o '[-]D.*')
for mutant in "${mutants[@]}"; do
  found=$(errors "$mutant")
  if [ "$found" = 0 ]; then
    echo "FAILED: $mutant was not found"
    exit 1
  fi
  echo "$mutant: found, as it should be"
done
