#!/usr/bin/env bash
# install_test.sh <cmake> <build folder> <C compiler> <folder of readme_example.c and .text>
#
# Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
set -euo pipefail
cmake=$1 build=$2 cc=$3 example=$4
consumer=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/consumer

if [[ -n ${UK_SANITIZE:-} ]]; then
  echo "skipped: a library instrumented by -fsanitize=$UK_SANITIZE is not for installing"
  exit 77
fi

rm -rf prefix moved by_cmake by_pkg_config library_only
"$cmake" --install "$build" --prefix "$PWD/prefix" > install.log
mv prefix moved # an install tree can be moved

configure() { # <folder> <option>...
  local folder=$1
  shift
  "$cmake" -S "$consumer" -B "$folder" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_PREFIX_PATH="$PWD/moved" "$@"
}

echo "find_package(ukernel COMPONENTS cpu)"
configure by_cmake -DEXAMPLE="$example/readme_example.c" > by_cmake.log
"$cmake" --build by_cmake >> by_cmake.log
by_cmake/consumer | diff -u "$example/readme_example.text" -

echo "pkg-config ukernel-cpu"
package_folder=$(dirname "$(find moved -name ukernel-cpu.pc)")
mapfile -t -d ' ' flags < <(PKG_CONFIG_PATH=$package_folder${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH} \
  pkg-config --cflags --libs ukernel-cpu | tr -d '\n')
mkdir by_pkg_config
"$cc" "$example/readme_example.c" "${flags[@]}" -o by_pkg_config/consumer
by_pkg_config/consumer | diff -u "$example/readme_example.text" -

echo "find_package(ukernel) where there is no cpuinfo"
export PKG_CONFIG_LIBDIR=$PWD/no_packages
configure library_only > library_only.log
"$cmake" --build library_only >> library_only.log
library_only/consumer
if configure by_cmake --fresh -DEXAMPLE="$example/readme_example.c" > no_cpuinfo.log 2>&1; then
  echo "FAIL: the cpu component was found without cpuinfo"
  exit 1
fi
grep -q 'libcpuinfo-dev' no_cpuinfo.log || {
  echo "FAIL: the message does not name the package"
  cat no_cpuinfo.log
  exit 1
}
