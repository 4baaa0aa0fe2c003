#!/bin/sh
# What the plugin's file shows to the process that loads it, and what it needs from there.
#
#   check_symbols.sh PLUGIN EXPORTS.MAP [SANITIZERS]
#
# The plugin lives in other people's processes: it must show nothing but its interface, need nothing
# but the C library, load where that is as old as 2.34, and stay loaded.
set -eu
plugin=$1
map=$2
newest_glibc=2.34

if [ -n "${3:-}" ]; then
  echo "SKIP: a build with -fsanitize=$3 needs its run-time library"
  exit 77
fi
for tool in nm readelf; do
  command -v "$tool" > /dev/null || { echo "SKIP: no $tool"; exit 77; }
done

checks=0
failed=0
# expect WHAT WANTED SEEN
expect() {
  checks=$((checks + 1))
  [ "$2" = "$3" ] && return
  failed=$((failed + 1))
  printf '%s: %s\n  wanted: %s\n  seen:   %s\n' "$plugin" "$1" "$2" "$3"
}
one_line() { tr '\n' ' ' | sed 's/ *$//'; }

wanted=$(sed -n 's/^ *\([A-Za-z_][A-Za-z0-9_]*\);$/\1/p' "$map" | LC_ALL=C sort | one_line)
names() { echo "$wanted" | tr ' ' '\n' | grep -c "$1"; }
expect "the map names the seven tuners" 7 "$(names '^ncclTunerPlugin_v[1-7]$')"
expect "the map names the seven profilers" 7 "$(names '^ncclProfiler_v[1-7]$')"
expect "the map names the two env plugins" 2 "$(names '^ncclEnvPlugin_v[12]$')"
expect "exported symbols" "$wanted" \
       "$(nm -D --defined-only "$plugin" | awk '{ sub("@.*", "", $3); print $3 }' \
          | LC_ALL=C sort | one_line)"
# 'u': unique in the whole process, whatever RTLD_LOCAL says. Two such libraries share state.
expect "unique symbols" "" "$(nm -D "$plugin" | awk '$2 == "u"' | one_line)"
# The versions are data, not functions: dlsym's answer is read as a structure.
expect "versions that are no objects" "" \
       "$(readelf -W --dyn-syms "$plugin" \
          | awk '$8 ~ /^nccl.*_v[0-9]/ && $4 != "OBJECT"' | one_line)"

dynamic=$(readelf -W -d "$plugin")
expect "needed libraries" "" \
       "$(echo "$dynamic" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' \
          | grep -v -e '^libc\.so\.6$' -e '^libm\.so\.6$' -e '^ld-linux.*\.so\.[0-9]*$' | one_line || true)"
expect "the name inside the file" libnccl-tuner-diapason.so \
       "$(echo "$dynamic" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')"
expect "relocations in the code (TEXTREL)" 0 "$(echo "$dynamic" | grep -c TEXTREL || true)"
expect "a search path of the builder's (RPATH)" 0 \
       "$(echo "$dynamic" | grep -c -e RPATH -e RUNPATH || true)"
expect "stays loaded (NODELETE)" 1 "$(echo "$dynamic" | grep -c 'FLAGS_1.*NODELETE' || true)"
expect "symbols resolved at load (NOW)" 1 "$(echo "$dynamic" | grep -c 'FLAGS_1.*NOW' || true)"
expect "executable stack" "" \
       "$(readelf -W -l "$plugin" | awk '$1 == "GNU_STACK" && $7 ~ /E/' | one_line)"

versions=$(readelf -W -V "$plugin" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -u)
too_new=""
for version in $versions; do
  newest=$(printf '%s\n%s\n' "$version" "$newest_glibc" | sort -V | tail -1)
  [ "$newest" = "$newest_glibc" ] || too_new="$too_new $version"
done
expect "C library versions above $newest_glibc" "" "$too_new"
# Relative relocations packed for 2.36 and later show as a version without a number.
expect "features of newer C libraries" 0 "$(readelf -W -V "$plugin" | grep -c GLIBC_ABI || true)"
checks=$((checks + 1))
if [ -z "$versions" ]; then
  failed=$((failed + 1))
  echo "$plugin: no versions of the C library were found: the check above saw nothing"
fi

echo "check_symbols: $checks checks, $failed failed"
[ "$failed" -eq 0 ]
