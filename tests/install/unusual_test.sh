#!/usr/bin/env bash
# unusual_test.sh <cmake> <C compiler> <C++ compiler>
# Configures the library where names, folders, options and generators are such as a developer's are not.
#
# Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
set -euo pipefail
cmake=$1 compiler=$2 cxx=$3
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

fail() {
  echo "FAIL: $*"
  exit 1
}

configure() { # <source folder> <build folder> <option>...
  "$cmake" -S "$1" -B "$2" -DCMAKE_C_COMPILER="$compiler" -DCMAKE_CXX_COMPILER="$cxx" \
    -DUK_GENERATE=OFF "${@:3}" > configure.log 2>&1 || { cat configure.log; fail "configuring $2"; }
}
alone=(-DUK_BUILD_TESTS=OFF -DUK_BUILD_BENCH=OFF -DUK_BUILD_CPU=OFF)

rm -rf usual 'odd [1] +&' odd absolute several empty
configure "$tree" usual "${alone[@]}"

echo "a path with what patterns are made of, and a project that joins sources"
mkdir 'odd [1] +&'
cp -r "$tree"/{CMakeLists.txt,LICENSE,arch,cmake,ukernel} 'odd [1] +&'
configure 'odd [1] +&' odd "${alone[@]}" -DCMAKE_UNITY_BUILD=ON
files() { # <build folder>
  sed -nE 's#^ *"file": ".*/((arch|ukernel)/.*\.cc)",*$#\1#p' "$1/compile_commands.json" | sort
}
[[ $(files usual | wc -l) -gt 20 ]] || fail "few files to compile"
diff <(files usual) <(files odd)

echo "a folder for archives that is an absolute path"
configure "$tree" absolute "${alone[@]}" -DCMAKE_INSTALL_PREFIX=/opt/uk -DCMAKE_INSTALL_LIBDIR=/srv/lib
flags=$(PKG_CONFIG_PATH=$PWD/absolute pkg-config --cflags --libs ukernel)
[[ $flags == *-I/opt/uk/include* && $flags == *-L/srv/lib* ]] || fail "$flags"

echo "several configurations in one build"
configure "$tree" several -G "Ninja Multi-Config"

echo "a list of tiles with nothing between its separators"
if "$cmake" -S "$tree" -B empty -DCMAKE_C_COMPILER="$compiler" -DCMAKE_CXX_COMPILER="$cxx" "${alone[@]}" \
    -DUK_EXTRA_TILES=";;mmt4d f32f32f32 9x48x3 avx99;" > configure.log 2>&1; then
  fail "a level avx99 was known"
fi
grep -q "unknown level 'avx99'" configure.log || { cat configure.log; fail "the message is of something else"; }
