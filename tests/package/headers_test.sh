#!/usr/bin/env bash
# headers_test.sh SOURCE: the public headers, each alone and as programs use them, give no warning in programs
# that are compiled with -Wall -Wextra -Wpedantic. (Compilers are silent about headers in /usr/include, and only
# there.)
set -euo pipefail
source=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/package/common.sh
. "$here/common.sh"

strict=(-Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$source/include")
tried=0
for compiler in g++ clang++ clang++-14; do
  command -v "$compiler" >/dev/null || continue
  tried=$((tried + 1))
  for header in "$source"/include/diapason/*.h; do
    "$compiler" -std=c++20 "${strict[@]}" -include "$header" -x c++ /dev/null || fail "$header, $compiler"
  done
  for file in "$here/uses_headers.cc" "$source/examples/installed/sum.cc"; do
    "$compiler" -std=c++20 "${strict[@]}" "$file" || fail "$file, $compiler"
  done
done
[ "$tried" -gt 0 ] || skip "there is no C++ compiler"
if command -v cc >/dev/null; then
  cc -std=c11 "${strict[@]}" -include "$source/include/diapason/diapason.h" -x c /dev/null || fail "diapason.h in C"
fi
say "fine"
