#!/usr/bin/env bash
# check.sh <check> <libukernel.a> <C compiler> <source folder>
# Runs where tile_objects.txt and op_objects.txt list the objects of the library. A cross build names
# its tools in AR, NM and OBJDUMP, the compiler's options in CFLAGS and what runs its programs in
# EMULATOR. FAST_MATH_OBJECT is ukernel/generic.cc with -ffast-math before the library's flags.
# CPU_LIBRARY and IREE_LIBRARY (empty if it is not built) are the other archives.
#
# Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
set -euo pipefail
export LC_ALL=C # the tools translate what is looked for below
check=$1 library=$2 cc=$3 source=$4
shopt -s lastpipe # for fail_by_line, which sets a variable
ar=${AR:-ar} nm=${NM:-nm} objdump=${OBJDUMP:-objdump}
read -ra cflags <<< "${CFLAGS:-}"
read -ra emulator <<< "${EMULATOR:-}"

if [[ -n ${UK_SANITIZE:-} && $check != constants ]]; then # that one reads sources alone
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

# Of each line a failure. The tools read all objects at once, as a process for each takes minutes.
fail_by_line() {
  local message
  while IFS= read -r message; do fail "$message"; done
}

# What the rules of awk print of objdump's report, where "object" is the file that a line is about.
of_each_object() { # <objdump's option> <rules> <object>...
  local option=$1 rules=$2
  shift 2
  "$objdump" -w "$option" "$@" |
    awk "/:[ \t]+file format / { object = \$0; sub(/:[ \t]+file format .*/, \"\", object); next } $rules"
}

# Likewise of nm's, where "symbol" has the line's name and type.
of_each_symbol() { # <rules> <object>...
  local rules=$1
  shift
  "$nm" -A -P "$@" | awk -F '[.]o: ' "
    NF != 2 { print \"no line about an object: \" \$0; next }
    { object = \$1 \".o\"; split(\$2, symbol, \" \") } $rules"
}

# Sections that stay writable must be empty. (.data.rel.ro is not: the loader makes the table's
# pointers read-only once it has relocated them.)
check_no_writable_data() { # <object>...
  of_each_object -h '
    $1 ~ /^[0-9]+$/ && / ALLOC/ && !/READONLY/ && $2 !~ /^\.data\.rel\.ro/ && $3 !~ /^0+$/ {
      print object " has writable data: " $2
    }' "$@" | fail_by_line
}

check_tile_objects() {
  {
    of_each_symbol '
      symbol[2] == "U" { print object " needs " symbol[1] }
      symbol[2] ~ /^[WwVvu]$/ { print object " has the weak symbol " symbol[1] }' "${tile_objects[@]}"

    # Every function has its own section, and what code refers to is read-only data, a helper local
    # to the file, or of a tile its strided function: never another tile.
    of_each_object -t '
      $3 == "F" && $4 != ".text." $NF { print object ": " $NF " is in section " $4 }
      $NF ~ /^uk_.*_(strided|forms)$/ && $(NF - 1) != ".hidden" { print object ": not hidden: " $NF }' \
      "${tile_objects[@]}"
    of_each_object -r '
      /^RELOCATION RECORDS FOR/ {
        in_code = /\[\.text/
        strided = $4
        gsub(/^\[\.text\.|\]:$/, "", strided)
        strided = "^(\\.text\\.)?" strided "_strided([-+]0x[0-9a-f]+)?$"
      }
      in_code && /R_/ && $3 !~ /^\.(rodata|LC|L|text\._ZN12_GLOBAL__N_1)/ && $3 !~ strided {
        print object ": code refers to " $3
      }' "${tile_objects[@]}" | sort -u
  } | fail_by_line
  check_no_writable_data "${tile_objects[@]}"
  echo "${#tile_objects[@]} objects, $(symbols T "${tile_objects[@]}" | grep -cv '_strided$') tile functions"
}

check_op_objects() {
  { symbols TRD "$library"; printf '%s\n' memcpy memset _GLOBAL_OFFSET_TABLE_; } > defined.txt
  of_each_symbol '
    BEGIN { while ((getline name < "defined.txt") > 0) defined[name] }
    symbol[2] == "U" && !(symbol[1] in defined) { print object " needs " symbol[1] }
    symbol[2] ~ /^[WwVvu]$/ { print object " has the weak symbol " symbol[1] }' \
    "${op_objects[@]}" | fail_by_line
  check_no_writable_data "${op_objects[@]}"
  echo "${#op_objects[@]} objects"
}

# The first and last tile of each object: a program that calls one has it, no other, and not the
# table.
check_one_tile() {
  local op tile programs=()
  for op in mmt4d pack unpack; do
    "$cc" "${cflags[@]}" -I"$source" -O2 -DTILE=tile_to_call -DTILE_FN="uk_${op}_tile_fn" \
      -c "$source/tests/link/one_tile.c" -o "call_$op.o"
  done
  of_each_symbol '
    symbol[2] != "T" || symbol[1] ~ /_strided$/ { next }
    object != before { if (last) print last; print symbol[1]; before = object; last = ""; next }
    { last = symbol[1] }
    END { if (last) print last }' "${tile_objects[@]}" > tiles.txt
  rm -rf programs
  mkdir programs
  while read -r tile; do
    op=${tile#uk_}
    # A name that --defsym refers to takes no member out of an archive; one that is undefined does.
    "$cc" "${cflags[@]}" "call_${op%%_*}.o" "$library" -Wl,--undefined="$tile" \
      -Wl,--defsym=tile_to_call="$tile" -Wl,--gc-sections -o "programs/$tile"
    "${emulator[@]}" "programs/$tile" || fail "the program that calls $tile does not run"
    programs+=("programs/$tile")
  done < tiles.txt
  # Helpers that are the tile's own have its name in theirs.
  "$nm" -A -P "${programs[@]}" | awk -F ': ' '
    BEGIN { while ((getline tile < "tiles.txt") > 0) missing[tile] }
    { tile = $1; sub(/^programs\//, "", tile); split($2, symbol, " "); name = symbol[1] }
    name == tile { delete missing[tile]; next }
    name == tile "_strided" || index(name, tile "_blocks") { next }
    name ~ /uk_/ || name ~ /^_ZN?K?2uk/ { print "a program that calls " tile " has " name }
    END { for (tile in missing) print "the program that calls " tile " lacks it" }' | fail_by_line
  size "${programs[@]}" | awk 'NR > 1 { sub(/.*\//, "", $NF); print $NF " alone, " $1 " bytes of code" }'
}

# The functions of an archive that are no tiles: exactly these.
check_functions() { # <archive> <function>...
  local archive=$1 difference
  shift
  difference=$(diff <(printf '%s\n' "$@" | sort) \
    <(symbols TRDB "$archive" | grep -Ev '^uk_[a-z0-9]+_tile_[a-z0-9]+_[0-9]|^_ZNK?2uk[0-9]')) ||
    fail "$archive: functions that are missing (<) or unknown (>): ${difference//$'\n'/ }"
}

# What an archive needs of others.
check_needs() { # <archive> <regular expression>
  local archive=$1 found
  found=$(symbols U "$archive" | grep -Evx "_GLOBAL_OFFSET_TABLE_|$2" || true)
  [[ -z $found ]] || fail "$archive needs ${found//$'\n'/ }"
}

# The names that programs link to are part of the ABI: a change of these lists is a change of it.
# Names of tiles are pinned by their grammar alone, as which tiles there are is the build's choice,
# and the generator makes any. The namespace uk is the library's own.
check_symbols() {
  local size='[1-9][0-9]?' types levels tile copy found
  types='(f32f32f32|f64f64f64|f16f16f32|f16f16f16|bf16bf16f32|bf16bf16bf16'
  types+='|s8s8s32|u8s8s32|s16s16s32|s16u4s32|s16s8s32|s8s4s32)'
  levels='(x86_64_(sse2|avx2_fma|avx_vnni|avx512_base|avx512_vnni|avx512_bf16|avx512_fp16|amx_int8|amx_bf16)'
  levels+='|arm_64_(neon|fullfp16|fp16fml|bf16|dotprod|i8mm))'
  tile="uk_mmt4d_tile_${types}_${size}x${size}x${size}_${levels}(_f32acc)?"
  copy="uk_(un)?pack_tile_x(4|8|16|32|64)_${size}x${size}(_t)?_${levels}"
  # Those that end in _strided or _forms are hidden: no names to link to.
  found=$(symbols TRDB "$library" | grep -E '^uk_[a-z0-9]+_tile_[a-z0-9]+_[0-9]' |
    grep -Ev '_(strided|forms)$' | grep -Evx "$tile|$copy" || true)
  [[ -z $found ]] || fail "these are no names of tiles: ${found//$'\n'/ }"

  check_functions "$library" uk_abi_version uk_cpu_has_level uk_cpu_level uk_isa_level_at uk_mmt4d \
    uk_mmt4d_info uk_pack uk_query_tile_sizes uk_status_string uk_tile_at uk_tile_count uk_unpack
  check_functions "$CPU_LIBRARY" uk_cpu_detect
  check_needs "$CPU_LIBRARY" 'uk_.*|cpuinfo_.*|memcpy|memset|getauxval|syscall|__errno_location'
  [[ -n $IREE_LIBRARY ]] || return 0
  local mma=()
  if [[ $(symbols T "$library") == *x86_64* ]]; then
    mma=(iree_uk_mma_x86_avx512bf16_1x16x2_f32_bf16
      iree_uk_mma_x86_avx512vnni_16x16x2_i32_i8_casti16)
  fi
  check_functions "$IREE_LIBRARY" iree_uk_mmt4d iree_uk_mmt4d_info iree_uk_pack \
    iree_uk_query_tile_sizes_2d iree_uk_unpack "${mma[@]}"
  check_needs "$IREE_LIBRARY" 'uk_.*'
}

# The values that tests/abi_test.c pins: all that the header has.
check_constants() {
  local name unpinned=()
  while read -r name; do
    grep -qE "\b$name\b|CHECK_BIT\(${name#UK_CPU_}," "$source/tests/abi_test.c" || unpinned+=("$name")
  done < <(grep -oE '\bUK_[A-Z0-9_]+[A-Z0-9]\b' "$source/ukernel/ukernel.h" | sort -u)
  [[ ${#unpinned[@]} -eq 0 ]] || fail "tests/abi_test.c does not pin ${unpinned[*]}"
}

# The flags of a project around the library do not change what its code computes, and sources that
# are compiled without the library's flags refuse them.
check_fast_math() {
  local object log
  object=$(printf '%s\n' "${op_objects[@]}" | grep '/generic\.cc\.o$')
  cmp <("$objdump" -d -r "$object" | tail -n +3) <("$objdump" -d -r "$FAST_MATH_OBJECT" | tail -n +3) ||
    fail "-ffast-math before the library's flags changes the code of generic.cc"
  log=$("$cc" "${cflags[@]}" -I"$source" -ffast-math -fsyntax-only -x c++ "$source/ukernel/tile.h" 2>&1) &&
    fail "ukernel/tile.h compiles with -ffast-math"
  [[ $log == *"need -fno-fast-math"* ]] || fail "ukernel/tile.h says nothing of -fno-fast-math"
}

case $check in
  constants) check_constants ;;
  symbols) check_symbols ;;
  fast_math) check_fast_math ;;
  tile_objects) check_tile_objects ;;
  op_objects) check_op_objects ;;
  one_tile) check_one_tile ;;
  *) fail "no check named $check" ;;
esac
exit $status
