#!/usr/bin/env bash
# The daily commands; see usage below. Each does all that a fresh Debian or Ubuntu machine needs.
#
# Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'END'
usage: cmake/dev.sh [--no-install] <command> [options of the program it runs]

  demo     multiply the layers of a language model on this CPU (bench/llama_layers)
  test     run the tests: release build, then AddressSanitizer and UndefinedBehaviorSanitizer
  asan     only the second half of test
  clang    run the tests: release build by Clang, but for what no compiler changes
  tsan     run the tests under ThreadSanitizer
  mlir     compile a program by MLIR 19, with and without the library, and compare the results
  arm      build for 64-bit Arm and run the tests on emulated CPUs of every level
  bench    run the benchmarks of every tile that this CPU can run
  peers    time whole operations against OpenBLAS, BLIS, oneDNN, libxsmm and Eigen
  sweep    time the tiles that uk_query_tile_sizes returns against all others of their types
  report   measure what has changed, and make a page of it: build/report/index.html
  format   check the formatting; format --fix repairs it
  tidy     run clang-tidy on the library

Missing packages are named and installed with apt-get, as root or through sudo.
--no-install only names them, and exits with 1. Builds go to build/<preset>.
END
}

die() { # <exit code> <message>...
  local code=$1
  shift
  echo "dev.sh: $*" >&2
  exit "$code"
}

# ---------------------------------------------------------------- packages

missing=()
need() { # <package> <command that succeeds if it is there>...
  local package=$1
  shift
  "$@" > /dev/null 2>&1 || missing+=("$package")
}

has_jinja2() {
  python3 -c "import jinja2" || /usr/bin/python3 -c "import jinja2"
}

has_recent_cmake() {
  local version
  version=$(cmake --version | sed -n 's/^cmake version //p')
  [[ $(printf '%s\n' 3.25 "$version" | sort -V | head -n 1) == 3.25 ]]
}

clang_links_sanitizers() {
  echo 'int main() {}' | clang++ -fsanitize=address,undefined -x c++ -o /dev/null -
}

has_header() { # <file>
  echo "#include <$1>" | c++ -fsyntax-only -x c++ -
}

# <what the command uses: build, clang, emulator, mlir, arm, peers, format, tidy>...
find_missing() {
  local use
  missing=()
  for use; do
    case $use in
      build)
        need cmake has_recent_cmake
        need ninja-build command -v ninja
        need g++ command -v c++
        need pkg-config command -v pkg-config
        need libcpuinfo-dev pkg-config --exists libcpuinfo
        need libgtest-dev pkg-config --exists gtest
        need libbenchmark-dev pkg-config --exists benchmark
        need python3-jinja2 has_jinja2
        ;;
      clang)
        need clang command -v clang++
        need libclang-rt-dev clang_links_sanitizers
        ;;
      emulator) need qemu-user command -v qemu-x86_64 ;;
      mlir)
        need mlir-19-tools command -v mlir-opt-19
        need llvm-19 command -v llc-19
        ;;
      arm)
        need g++-aarch64-linux-gnu command -v aarch64-linux-gnu-g++
        need qemu-user command -v qemu-aarch64
        need googletest test -f /usr/src/googletest/CMakeLists.txt
        ;;
      peers)
        need libopenblas-dev pkg-config --exists openblas
        need libblis-dev has_header blis.h
        need libdnnl-dev has_header dnnl.hpp
        need libxsmm-dev pkg-config --exists libxsmm
        need libeigen3-dev pkg-config --exists eigen3
        ;;
      format) need clang-format command -v clang-format ;;
      tidy) need clang-tidy command -v clang-tidy ;;
    esac
  done
}

install_missing() {
  local as_root=()
  [[ $install == yes ]] || die 1 "missing packages: ${missing[*]}"
  command -v apt-get > /dev/null || die 1 "missing: ${missing[*]} (and no apt-get to install them)"
  if [[ $EUID -ne 0 ]]; then
    command -v sudo > /dev/null || die 1 "missing packages: ${missing[*]} (neither root nor sudo)"
    as_root=(sudo)
  fi
  echo "dev.sh: installing ${missing[*]}"
  # dpkg wants the sbin folders; another apt-get may hold the lock for a while.
  as_root+=(env "PATH=$PATH:/usr/sbin:/sbin" DEBIAN_FRONTEND=noninteractive apt-get -qq
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  "${as_root[@]}" update < /dev/null
  "${as_root[@]}" install -y --no-install-recommends "${missing[@]}" < /dev/null > /dev/null
}

require() { # <use>...
  find_missing "$@"
  [[ ${#missing[@]} -eq 0 ]] && return
  install_missing
  find_missing "$@"
  [[ ${#missing[@]} -eq 0 ]] || die 1 "still missing after the installation: ${missing[*]}"
}

# Debian's packages of cpuinfo for the host and for another architecture hold the same files, so they
# cannot be installed together. apt-get fetches those for Arm into a state of its own, without root
# and without a word to dpkg of another architecture.
fetch_arm_cpuinfo() {
  local root=build/arm-packages state=$PWD/build/arm-apt packages=(libcpuinfo-dev libcpuinfo0) package
  [[ -e $root/usr/lib/aarch64-linux-gnu/libcpuinfo.so ]] && return
  [[ $install == yes ]] || die 1 "missing in $root: ${packages[*]/%/:arm64}"
  command -v apt-get > /dev/null || die 1 "no apt-get to fetch ${packages[*]/%/:arm64}"
  echo "dev.sh: fetching ${packages[*]/%/:arm64}"
  rm -rf "$state" "$root.partial"
  mkdir -p "$state/lists/partial" "$state/archives/partial" "$root.partial"
  local apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64
    -o Dir::State="$state" -o Dir::State::lists="$state/lists" -o Dir::State::status=/dev/null
    -o Dir::Cache="$state" -o APT::Sandbox::User= -o Acquire::Languages=none
    -o Acquire::Retries=3)
  "${apt[@]}" update && (cd "$state" && "${apt[@]}" download "${packages[@]}") ||
    die 1 "apt-get finds no ${packages[*]/%/:arm64}; unpack these packages into $root"
  for package in "$state"/*.deb; do dpkg -x "$package" "$root.partial"; done
  mv "$root.partial" "$root"
  rm -rf "$state"
}

# ---------------------------------------------------------------- commands

build() { # <preset> [<target>]
  cmake --preset "$1" > /dev/null
  cmake --build --preset "$1" ${2:+--target "$2"}
}

build_with_peers() { # [<target>]
  cmake --preset release -DUK_BUILD_PEERS=ON > /dev/null
  build release "$@"
}

# Prints all of ctest's report but the tests that passed.
run_tests() { # <preset> [<ctest's options>...]
  build "$1"
  echo "dev.sh: testing build/$1"
  ctest --preset "$@" --parallel "$(nproc)" 2>&1 |
    grep -vE '^ *([0-9]+/[0-9]+ Test .* Passed |Start +[0-9]+: )'
}

# The same under sanitizers, and what was skipped in programs that ctest runs in parts.
run_sanitized_tests() { # <preset>
  run_tests "$1"
  grep '^\[  SKIPPED \] .* (.* ms)$' "build/$1/Testing/Temporary/LastTest.log" || true
}

sources() {
  find ukernel arch bench generator tests -name '*.h' -o -name '*.c' -o -name '*.cc' # .inc are tables
}

install=yes
arguments=()
for argument; do
  if [[ $argument == --no-install ]]; then install=no; else arguments+=("$argument"); fi
done
set -- "${arguments[@]}"
[[ $# -gt 0 ]] || { usage >&2; exit 2; }
command=$1
shift
case $command in
  demo | bench | peers | sweep | report) ;;
  format) [[ $# -eq 0 || $* == --fix ]] || die 2 "format knows only --fix, not '$*'" ;;
  test | asan | clang | tsan | mlir | arm | tidy) [[ $# -eq 0 ]] || die 2 "$command takes no options, not '$*'" ;;
  -h | --help) usage; exit ;;
  -*) die 2 "unknown option '$command'; cmake/dev.sh --help lists the commands" ;;
  *) die 2 "unknown command '$command'; cmake/dev.sh --help lists them" ;;
esac

case $command in
  demo)
    require build
    build release llama_layers
    build/release/bench/llama_layers "$@"
    ;;
  test)
    require build clang emulator
    run_tests release
    run_sanitized_tests debug
    ;;
  asan)
    require build clang
    run_sanitized_tests debug
    ;;
  clang)
    require build clang
    # The ops and the benchmarks, by Clang, are tested under the sanitizers.
    run_tests clang --label-exclude '^(python|ops_test|bench-smoke)$'
    ;;
  tsan)
    require build clang
    run_sanitized_tests tsan
    ;;
  mlir)
    require build mlir
    run_tests release --tests-regex '^mlir\.'
    ;;
  arm)
    require build arm
    fetch_arm_cpuinfo
    run_tests arm
    ;;
  bench)
    require build
    build release
    result=0
    for benchmark in build/release/bench/bench_*; do
      [[ -x $benchmark ]] || continue
      status=0
      "$benchmark" "$@" || status=$?
      case $status in
        0 | 77) ;;          # 77: this CPU lacks the level, as it has said
        3) result=$status ;; # a figure above 101 %, as it has said
        *) exit "$status" ;;
      esac
    done
    exit "$result"
    ;;
  peers)
    require build peers
    build_with_peers bench_ops
    results=build/release/bench_ops.json
    build/release/bench/peers/bench_ops \
      --benchmark_out="$results" --benchmark_out_format=json "$@" >&2 ||
      [[ $? -eq 3 ]] # a figure above 101 %, which the tables name
    python3 bench/peers.py "$results"
    ;;
  sweep)
    require build
    build release bench_query
    results=build/release/bench_query.json
    build/release/bench/query/bench_query \
      --benchmark_out="$results" --benchmark_out_format=json "$@" >&2
    python3 bench/query/map.py "$results"
    ;;
  report)
    require build peers
    build_with_peers
    "$(sed -n 's/^UK_PYTHON:FILEPATH=//p' build/release/CMakeCache.txt)" -m bench.report build/release "$@"
    ;;
  format)
    require format
    if [[ $# -gt 0 ]]; then
      sources | xargs clang-format -i
    else
      sources | xargs clang-format --dry-run --Werror
    fi
    ;;
  tidy)
    require build clang tidy
    cmake --preset clang > /dev/null
    # Of what that build compiles: the files of another architecture need its compiler.
    sed -n 's/^ *"file": "\(.*\)",*$/\1/p' build/clang/compile_commands.json |
      awk -v tree="$PWD/" 'index($0, tree "ukernel/") == 1 || index($0, tree "arch/") == 1' | sort -u |
      xargs -d '\n' clang-tidy -p build/clang --quiet
    ;;
esac
