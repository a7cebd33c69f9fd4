#!/usr/bin/env bash
# install_test.sh <cmake> <build folder> <C compiler> <C++ compiler> <folder of readme_example.c and .text>
# Builds the README's program against an install tree, in each of the ways that its section "Linking
# it" has, as they stand there.
#
# Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
set -euo pipefail
cmake=$1 build=$2 compiler=$3 cxx=$4 example=$5
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [[ -n ${UK_SANITIZE:-} ]]; then
  echo "skipped: a library instrumented by -fsanitize=$UK_SANITIZE is not for installing"
  exit 77
fi

rm -rf prefix moved by_cmake by_cmake_build by_compiler library_only \
  conformance conformance_build no_component no_component_build generator
"$cmake" --install "$build" --prefix "$PWD/prefix" > install.log
mv prefix moved # an install tree can be moved
export DIR=$PWD/moved
export PKG_CONFIG_PATH=$DIR/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}

fail() {
  echo "FAIL: $1"
  cat "$2"
  exit 1
}

# The README's code blocks of a language, in the section "Linking it".
blocks() { # <language>
  sed -n '/^## Linking it$/,/^## /p' "$here/../../README.md" |
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/ { /^\`\`\`/d; p }"
}

cc() { "$compiler" "$@"; }
c++() { "$cxx" "$@"; }

configure() { # <source folder> <build folder> <option>...
  local source=$1 folder=$2
  shift 2
  "$cmake" -S "$source" -B "$folder" -DCMAKE_C_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$DIR" "$@"
}

mkdir by_cmake
cp "$example/readme_example.c" by_cmake/your_program.c
{
  echo "cmake_minimum_required(VERSION 3.25)"
  echo "project(example LANGUAGES C)"
  echo "add_executable(your_program your_program.c)"
  blocks cmake
} > by_cmake/CMakeLists.txt
blocks cmake | tee /dev/stderr | grep -q find_package
configure by_cmake by_cmake_build > by_cmake.log
"$cmake" --build by_cmake_build >> by_cmake.log
by_cmake_build/your_program | diff -u "$example/readme_example.text" -

mkdir by_compiler
cp "$example/readme_example.c" by_compiler/your_program.c
commands=0
while read -r command; do
  echo "$command"
  (cd by_compiler && rm -f your_program && eval "$command" &&
    ./your_program | diff -u "$example/readme_example.text" -)
  commands=$((commands + 1))
done < <(blocks sh)
[[ $commands -eq 2 ]] || fail "the README has $commands commands to link by" "$here/../../README.md"

iree=()
if [[ -e $DIR/lib/libukernel_iree.a ]]; then
  echo "pkg-config ukernel-iree"
  read -ra flags <<< "$(pkg-config --cflags --libs ukernel-iree)"
  cc "$here/consumer/iree.c" "${flags[@]}" -o by_compiler/iree
  by_compiler/iree
  iree=(-DIREE=ON)
fi

echo "ukernel::conformance, and the commands of its header"
mkdir conformance
cp "$DIR/include/ukernel/example_rows.c" conformance
cat > conformance/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(example LANGUAGES C CXX)
find_package(ukernel REQUIRED COMPONENTS conformance)
add_executable(example example_rows.c)
target_link_libraries(example PRIVATE ukernel::conformance)
END
configure conformance conformance_build -DCMAKE_CXX_COMPILER="$cxx" > conformance.log
"$cmake" --build conformance_build >> conformance.log
conformance_build/example
(
  cd conformance
  commands=0
  while read -r command; do
    echo "$command"
    eval "$command"
    commands=$((commands + 1))
  done < <(sed -nE 's/^ \*   ((cc|c\+\+) .*)/\1/p' "$DIR/include/ukernel/ukernel_conformance.h")
  [[ $commands -eq 2 ]]
  ./a.out
)

if [[ -e $DIR/share/ukernel/tiles.json ]]; then
  echo "python3 -m generator"
  tree=$(cd "$here/../.." && pwd)
  for folder in generator arch; do
    diff -rq -x README.md -x CMakeLists.txt -x __pycache__ "$tree/$folder" "$DIR/share/ukernel/$folder"
  done
  mkdir generator
  printf '%s\n' 'mmt4d s8s4s32 11x32x8 avx512_vnni' 'mmt4d f32f32f32 8x32x1 avx512_base' \
    'pack x32 9x3 t avx2_fma' > generator/tiles.txt
  build_tiles() { # <folder of the generator's> <output folder>
    PYTHONPATH=$1 PYTHONDONTWRITEBYTECODE=1 python3 -m generator build --self-contained \
      --manifest generator/tiles.txt --cc "$cxx" --cache "$2.cache" --out "$2"
  }
  build_tiles "$tree" generator/of_tree
  build_tiles "$DIR/share/ukernel" generator/of_install
  cmp generator/of_tree/index.json generator/of_install/index.json
fi

mkdir no_component
{
  echo "cmake_minimum_required(VERSION 3.25)"
  echo "project(example LANGUAGES C)"
  echo "find_package(ukernel REQUIRED COMPONENTS foo)"
} > no_component/CMakeLists.txt
if configure no_component no_component_build > no_component.log 2>&1; then
  fail "a component 'foo' was found" no_component.log
fi
grep -q "no component 'foo'" no_component.log || fail "the message does not name 'foo'" no_component.log

echo "find_package(ukernel), where there is no cpuinfo"
export PKG_CONFIG_LIBDIR=$PWD/no_packages PKG_CONFIG_PATH=
configure "$here/consumer" library_only "${iree[@]}" > library_only.log
"$cmake" --build library_only >> library_only.log
library_only/consumer
[[ ${#iree[@]} -eq 0 ]] || library_only/iree_consumer
if configure by_cmake by_cmake_build --fresh > no_cpuinfo.log 2>&1; then
  fail "the cpu component was found without cpuinfo" no_cpuinfo.log
fi
grep -q 'libcpuinfo-dev' no_cpuinfo.log || fail "the message does not name the package" no_cpuinfo.log
