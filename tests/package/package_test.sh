#!/usr/bin/env bash
# package_test.sh BUILD WORK: makes the Debian packages from the build folder BUILD, and looks at them as far as that goes
# without installing: lintian, what is in them, that nothing points back to where they were made, and
# programs that are compiled against them and run. WORK is a folder of our own; the packages stay in it.
set -euo pipefail
build=$1
work=$2
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
# shellcheck source=tests/package/common.sh
. "$here/common.sh"

for tool in dpkg-buildpackage dh dh_python3; do
  command -v "$tool" >/dev/null || skip "$tool is missing (dpkg-dev, debhelper, dh-python)"
done
[ -x "$build/bin/diapason" ] || skip "$build has no tool"
version=$(cat "$source/VERSION")
architecture=$(dpkg --print-architecture)
rm -rf "$work"
mkdir -p "$work"

# (Somebody may be editing the rest meanwhile.)
ours() { (cd "$source" && ls && find packaging cmake python | LC_ALL=C sort); }
before=$(ours)
timeout 1200 "$source/packaging/debian/build.sh" --build "$build" "$work/debian" >"$work/sums"
timeout 1200 "$source/packaging/debian/build.sh" --build "$build" "$work/again" >"$work/sums.again"
if ! cmp -s "$work/sums" "$work/sums.again"; then
  for folder in debian again; do
    for deb in "$work/$folder"/*.deb; do dpkg-deb -I "$deb" md5sums; done >"$work/$folder.md5"
  done
  fail "two packages of one build differ: $(diff "$work/debian.md5" "$work/again.md5")"
fi
rm -r "$work/again"
[ "$before" = "$(ours)" ] || fail "making the packages has changed the source tree"

if command -v lintian >/dev/null; then
  timeout 1200 lintian --fail-on error,warning --allow-root "$work"/debian/*.changes >&2 || fail "lintian is not content"
else
  say "lintian is not here: not run"
fi

# What is in them.
root=$work/root
for name in diapason libdiapason-dev python3-diapason; do
  [ "$name" = python3-diapason ] && kind=all || kind=$architecture
  deb=$work/debian/${name}_${version}_$kind.deb
  [ -f "$deb" ] || fail "$deb was not made"
  dpkg-deb -x "$deb" "$root"
  dpkg-deb -c "$deb" >>"$work/list"
done
awk '$1 ~ /s/ || $2 != "root/root" { print; bad = 1 } END { exit bad }' "$work/list" ||
  fail "a file is not root's, or sets a user"
library=$root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
while read -r file; do
  [ -e "$root/$file" ] || fail "$file is in no package"
done <<LIST
usr/bin/diapason
usr/include/diapason/comm.h
usr/include/diapason/diapason.h
usr/lib/python3/dist-packages/diapason/__init__.py
usr/share/diapason/clusters/h100x8.toml
usr/share/diapason/targets/four-gpu-nvlink.toml
usr/share/doc/diapason/README.md
usr/share/doc/diapason/THIRD-PARTY-NOTICES.md
usr/share/doc/diapason/copyright
usr/share/doc/diapason/docs/start/packages.md
usr/share/doc/diapason/examples/container/Containerfile
usr/share/doc/diapason/examples/installed/CMakeLists.txt
usr/share/doc/diapason/examples/slurm/train.sbatch
usr/share/doc/diapason/examples/workload_aware_8gpu.conf
usr/share/man/man1/diapason.1.gz
usr/share/bash-completion/completions/diapason
usr/share/zsh/vendor-completions/_diapason
usr/share/fish/vendor_completions.d/diapason.fish
LIST
for name in lib{nccl,rccl}-{tuner,profiler,env}-diapason.so; do
  [ "$(realpath "$library/$name")" = "$library/diapason/libnccl-tuner-diapason.so" ] || fail "$name is not the plugin"
done
find "$root" -xtype l | grep . && fail "these links lead nowhere"

# Everything that is linked in is named with its licence: the packages of Static-Built-Using, and what is static besides.
notices=$root/usr/share/doc/diapason/THIRD-PARTY-NOTICES.md
inside=$(sed -n '/^override_dh_gencontrol:/,/^$/p' "$source/packaging/debian/debian/rules" | grep -oE '[a-z0-9+-]+-dev')
[ -n "$inside" ] || fail "debian/rules names no package that is linked in"
for name in $inside libstdc++ libgcc; do
  grep -qF -- "$name" "$notices" || fail "$notices does not name $name"
done
for name in hiredis CLI11 nlohmann toml++ Eigen fmt SQLite libstdc++; do
  grep -qF -- "$name" "$root/usr/share/doc/diapason/copyright" || fail "debian/copyright does not name $name"
done

# Nothing points back to where it was made, and everything is hardened.
find "$library/diapason" -type f >"$work/binaries"
while read -r file; do
  readelf -dW "$file" >"$work/dynamic"
  ! grep -E 'RPATH|RUNPATH' "$work/dynamic" || fail "$file has a search path of its own"
  grep -qE 'BIND_NOW|FLAGS.*NOW' "$work/dynamic" || fail "$file binds late"
  readelf -lW "$file" | grep -q GNU_RELRO || fail "$file has no RELRO"
  ! readelf -SW "$file" | grep -q '\.symtab' || fail "$file is not stripped"
done <"$work/binaries"
# Older distributions run the plugin, the recorder and the tool, by the bundle or the wheel: glibc 2.34.
for file in libnccl-tuner-diapason.so libdiapason-mpi-recorder.so diapason; do
  newer=$(readelf --dyn-syms -W "$library/diapason/$file" | grep -oE '[a-z0-9_]+@GLIBC_2\.(3[5-9]|[4-9][0-9])' || true)
  [ -z "$newer" ] || fail "$file would not start with glibc 2.34, for it asks for ${newer//$'\n'/ }"
done
for path in "$(realpath "$build")" "$(realpath "$work")"; do
  ! grep -rlF -- "$path" "$root" || fail "these name $path"
done

# Needs nothing but the C and C++ libraries; the modules' libraries are a choice.
needs=$(dpkg-deb -f "$work/debian/diapason_${version}_$architecture.deb" Depends)
[[ "$needs" != *mpi* && "$needs" != *gloo* && "$needs" != *xgboost* ]] || fail "needed: $needs"
recommends=$(dpkg-deb -f "$work/debian/diapason_${version}_$architecture.deb" Recommends Suggests)
[ -f "$library/diapason/libdiapason-mpi-recorder.so" ] || fail "the recorder of MPI calls is in no package"
for file in "$library"/diapason/libdiapason-*-*.so; do
  name=$(basename "$file" .so)
  [ "$name" != libdiapason-mpi-recorder ] || continue  # it needs no MPI library of its own
  [[ "$recommends" == *"${name##*-}"* ]] || fail "$name is there, but its library is not recommended: $recommends"
done

# Run from where it was unpacked.
tool=$root/usr/bin/diapason
expect "$version" "$tool" --version
expect "tree/simple" "$tool" ask --policy "$root/usr/share/doc/diapason/examples/workload_aware_8gpu.conf" --sizes 1M
expect "$library/diapason/libnccl-tuner-diapason.so" "$tool" ask --sizes 1M
if [ -e "$library/diapason/libdiapason-comm-gloo.so" ]; then
  expect "0 OK" "$tool" bench all_reduce -g 2 --backend gloo -b 1K -e 1K
fi
# (lintian renders them all.)
for page in "$root"/usr/share/man/man1/diapason{,-bench}.1.gz; do
  LC_ALL=C.UTF-8 MANWIDTH=100 timeout 1200 man --warnings -l "$page" 2>"$work/man" >"$work/page" || fail "$page"
  [ ! -s "$work/man" ] || fail "$page: $(cat "$work/man")"
  grep -q NAME "$work/page" || fail "$page has no NAME"
done
bash -n "$root/usr/share/bash-completion/completions/diapason"
expect "$version" env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$root/usr/lib/python3/dist-packages" \
  python3 -c 'import diapason; diapason.step(); print(diapason.__version__)'
expect "$version" env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$root/usr/lib/python3/dist-packages" \
  python3 -c 'from importlib import metadata; print(metadata.version("diapason"))'

# Programs of others, by find_package and by pkg-config, as the manual says.
examples=$root/usr/share/doc/diapason/examples/installed
timeout 1200 cmake -S "$examples" -B "$work/program" -DCMAKE_PREFIX_PATH="$root/usr" -DCMAKE_BUILD_TYPE=Debug >"$work/cmake.log" 2>&1 ||
  fail "$(cat "$work/cmake.log")"
timeout 1200 cmake --build "$work/program" >>"$work/cmake.log" 2>&1 || fail "$(cat "$work/cmake.log")"
expect "2 ranks: 3" "$tool" launch -n 2 -- "$work/program/sum"
expect "no plugin in this process" "$work/program/steps"
expect "3 steps, plugin $version" "$work/program/steps" "$library/libnccl-env-diapason.so"
export PKG_CONFIG_PATH=$library/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
[ "$(pkg-config --modversion diapason)" = "$version" ] || fail "pkg-config knows another version"
[ -e "$root/$(PKG_CONFIG_SYSROOT_DIR='' pkg-config --variable=plugin diapason)" ] || fail "pkg-config knows another plugin"
# shellcheck disable=SC2046
timeout 1200 g++ -std=c++20 -Wall -Wextra -Wpedantic -Werror "$examples/sum.cc" -o "$work/sum" $(pkg-config --cflags --libs diapason)
expect "2 ranks: 3" env LD_LIBRARY_PATH="$library" "$tool" launch -n 2 -- "$work/sum"

timeout 1200 python3 "$here/recipes_test.py" "$source" "$tool"
say "fine: $(wc -l <"$work/list") files, $(du -ch "$work"/debian/*.deb | tail -n 1 | cut -f1) of packages in $work/debian"
