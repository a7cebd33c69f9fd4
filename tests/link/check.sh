#!/usr/bin/env bash
# check.sh <check> <libukernel.a> <C compiler> <source folder>
# Runs where tile_objects.txt and op_objects.txt list the objects of the library. A cross build names
# its tools in AR, NM and OBJDUMP, the compiler's options in CFLAGS and what runs its programs in
# EMULATOR.
#
# Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
set -euo pipefail
check=$1 library=$2 cc=$3 source=$4
ar=${AR:-ar} nm=${NM:-nm} objdump=${OBJDUMP:-objdump}
read -ra cflags <<< "${CFLAGS:-}"
read -ra emulator <<< "${EMULATOR:-}"

if [[ -n ${UK_SANITIZE:-} ]]; then
  echo "skipped: objects instrumented by -fsanitize=$UK_SANITIZE need its run-time library"
  exit 77
fi

status=0
fail() {
  echo "FAIL: $*"
  status=1
}

# Lists must not be empty, or every check below would pass.
mapfile -t tile_objects < <(grep . tile_objects.txt)
mapfile -t op_objects < <(grep . op_objects.txt)
[[ ${#tile_objects[@]} -gt 0 && ${#op_objects[@]} -gt 0 ]] || fail "no objects to check"
members=$("$ar" t "$library" | wc -l)
[[ $members -eq $((${#tile_objects[@]} + ${#op_objects[@]})) ]] ||
  fail "$library has $members members, but ${#tile_objects[@]} + ${#op_objects[@]} objects are known"

# Names of the symbols of the given nm types.
symbols() { # <types> <file>...
  local types=$1
  shift
  "$nm" -P "$@" | awk -v types="$types" 'NF >= 2 && $2 ~ "^[" types "]$" { print $1 }' | sort -u
}

# Sections that stay writable must be empty. (.data.rel.ro is not: the loader makes the table's
# pointers read-only once it has relocated them.)
check_no_writable_data() { # <object>...
  local object found
  for object; do
    found=$("$objdump" -h -w "$object" | awk '
      $1 ~ /^[0-9]+$/ && / ALLOC/ && !/READONLY/ && $2 !~ /^\.data\.rel\.ro/ && $3 !~ /^0+$/ { print $2 }')
    [[ -z $found ]] || fail "$object has writable data: ${found//$'\n'/ }"
  done
}

check_tile_objects() {
  local object undefined weak tile place
  for object in "${tile_objects[@]}"; do
    undefined=$(symbols U "$object")
    [[ -z $undefined ]] || fail "$object needs ${undefined//$'\n'/ }"
    weak=$(symbols WwVvu "$object")
    [[ -z $weak ]] || fail "$object has weak symbols ${weak//$'\n'/ }"

    # Every function has its own section, and what code refers to is read-only data or a helper
    # local to the file: never another tile.
    while read -r tile place; do
      [[ $place == ".text.$tile" ]] || fail "$object: $tile is in section $place"
    done < <("$objdump" -t "$object" | awk '$3 == "F" { print $NF, $4 }')
    while read -r place; do
      fail "$object: code refers to $place"
    done < <("$objdump" -r "$object" | awk '
      /^RELOCATION RECORDS FOR/ { in_code = /\[\.text/ }
      in_code && /R_/ && $3 !~ /^\.(rodata|LC|L|text\._ZN12_GLOBAL__N_1)/ { print $3 }' | sort -u)
  done
  check_no_writable_data "${tile_objects[@]}"
  echo "${#tile_objects[@]} objects, $(symbols T "${tile_objects[@]}" | wc -l) tile functions"
}

check_op_objects() {
  local object name weak
  symbols TRD "$library" > defined.txt
  for object in "${op_objects[@]}"; do
    weak=$(symbols WwVvu "$object")
    [[ -z $weak ]] || fail "$object has weak symbols ${weak//$'\n'/ }"
    while read -r name; do
      case $name in
        memcpy | memset | _GLOBAL_OFFSET_TABLE_) ;;
        *) grep -qxF "$name" defined.txt || fail "$object needs $name" ;;
      esac
    done < <(symbols U "$object")
  done
  check_no_writable_data "${op_objects[@]}"
  echo "${#op_objects[@]} objects"
}

# The first and last tile of each object: a program that calls one has it, no other, and not the
# table.
check_one_tile() {
  local object tile op found
  for object in "${tile_objects[@]}"; do
    while read -r tile; do
      op=${tile#uk_}
      op=${op%%_*}
      "$cc" "${cflags[@]}" -I"$source" -O2 -DTILE="$tile" -DTILE_FN="uk_${op}_tile_fn" "$source/tests/link/one_tile.c" "$library" \
        -Wl,--gc-sections -o one_tile
      found=$("$nm" -P one_tile | awk '$1 ~ /uk_/ || $1 ~ /^_ZN?K?2uk/ { print $1 }')
      # Helpers that are the tile's own have its name in theirs.
      found=$(awk -v tile="$tile" '$1 == tile || !index($1, tile "_blocks")' <<< "$found")
      [[ $found == "$tile" ]] || fail "a program that calls $tile has ${found//$'\n'/ }"
      "${emulator[@]}" ./one_tile || fail "the program that calls $tile does not run"
      echo "$tile alone, $(size one_tile | awk 'NR == 2 { print $1 }') bytes of code"
    done < <(symbols T "$object" | sed -n '1p;$p' | sort -u)
  done
}

case $check in
  tile_objects) check_tile_objects ;;
  op_objects) check_op_objects ;;
  one_tile) check_one_tile ;;
  *) fail "no check named $check" ;;
esac
exit $status
