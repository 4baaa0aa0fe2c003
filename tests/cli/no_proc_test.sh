#!/usr/bin/env bash
# no_proc_test.sh TOOL: in a root without /proc the tool cannot find its own folder. Its message names that, and not
# a package that was missing when it was built.
set -euo pipefail
tool=$1
unshare --mount sh -c 'umount -l /proc' 2>/dev/null || { echo "skipped: this place allows no mounts"; exit 77; }
# shellcheck disable=SC2016
said=$(unshare --mount sh -c 'umount -l /proc && "$0" backends || test $? -eq 1' "$tool" 2>&1)
grep -q '^gloo .*/proc/self/exe cannot be read.*is /proc mounted' <<<"$said" || { echo "without /proc: $said"; exit 1; }
! grep -q 'built without' <<<"$said" || { echo "without /proc: $said"; exit 1; }
said=$(DIAPASON_LIB_DIR=/nowhere "$tool" backends 2>&1 || test $? -eq 1)
grep -q '^gloo .*DIAPASON_LIB_DIR (/nowhere) has no libdiapason-comm-gloo.so' <<<"$said" || { echo "DIAPASON_LIB_DIR: $said"; exit 1; }
