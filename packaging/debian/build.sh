#!/usr/bin/env bash
# Makes the Debian packages: build.sh [--build FOLDER | --compile] [FOLDER]
#
# FOLDER (default out/debian) gets diapason, libdiapason-dev and python3-diapason as .deb files, with
# .changes and .buildinfo. Their files come from the Release build in --build (default build/release), which
# must be up to date; --compile uses no build and compiles everything with Debian's flags. The script only reads
# the source tree. The same source and build give the same bytes.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

say() { printf 'packaging: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

build=$source/build/release
output=$source/out/debian
while [ $# -gt 0 ]; do
  case "$1" in
    --build) [ $# -ge 2 ] || die "--build needs a folder"; build=$2; shift 2 ;;
    --compile) build=; shift ;;
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) die "unknown option '$1'; --help says what there is" ;;
    *) output=$1; shift ;;
  esac
done

for tool in dpkg-buildpackage dh dh_python3; do
  command -v "$tool" >/dev/null ||
    die "$tool is missing; please install: dpkg-dev debhelper dh-python"
done
if [ -n "$build" ]; then
  build=$(realpath "$build")
  [ -f "$build/cmake_install.cmake" ] || die "$build is no build folder; ./dev build makes one"
  grep -q '^CMAKE_BUILD_TYPE:[A-Z]*=Release$' "$build/CMakeCache.txt" || die "$build is no Release build"
  grep -q "^CMAKE_HOME_DIRECTORY:[A-Z]*=$source\$" "$build/CMakeCache.txt" ||
    die "$build was not configured from $source"
  [ -x "$build/bin/diapason" ] || die "$build has no bin/diapason; build it first"
fi

version=$(cat "$source/VERSION")
changelog=$source/packaging/debian/debian/changelog
head -n 1 "$changelog" | grep -q "^diapason ($version) " ||
  die "packaging/debian/debian/changelog has no entry for $version on top, which VERSION says this is"
if [ -n "$build" ]; then
  built=$("$build/bin/diapason" --version)
  [[ "$built" == *"$version"* ]] || die "$build holds '$built', not $version; build it again"
fi

mkdir -p "$output"
output=$(cd "$output" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/diapason-$version
mkdir "$tree"
cp -r "$source/packaging/debian/debian" "$tree/debian"
umask 022

export DIAPASON_SOURCE=$source
[ -n "$build" ] && export DIAPASON_BUILD=$build
DEB_BUILD_OPTIONS="noautodbgsym nocheck parallel=$(nproc) ${DEB_BUILD_OPTIONS:-}"
export DEB_BUILD_OPTIONS
# dpkg-buildpackage's check of build dependencies is needed only for --compile; ./dev has installed them.
skip=(-d)
[ -z "$build" ] && skip=()
if ! (cd "$tree" && dpkg-buildpackage -b -us -uc -nc "${skip[@]}") >"$output/build.log" 2>&1; then
  tail -n 40 "$output/build.log" >&2
  die "the packages could not be made; the whole output is in $output/build.log"
fi
rm -f "$output"/{diapason,libdiapason-dev,python3-diapason}_*.{deb,changes,buildinfo}
cp "$scratch"/*.{deb,changes,buildinfo} "$output/"
(cd "$output" && sha256sum -- *.deb)
