# The compiler flags of each ISA level: the only place that knows them. What a level needs of the CPU
# is in ukernel/isa.inc.

set(UK_FLAGS_x86_64_sse2)  # the baseline
set(UK_FLAGS_x86_64_avx2_fma -mavx2 -mfma -mf16c)
set(UK_FLAGS_x86_64_avx_vnni ${UK_FLAGS_x86_64_avx2_fma} -mavxvnni)
set(UK_FLAGS_x86_64_avx512_base
    ${UK_FLAGS_x86_64_avx2_fma} -mavx512f -mavx512cd -mavx512vl -mavx512dq -mavx512bw)
set(UK_FLAGS_x86_64_avx512_vnni ${UK_FLAGS_x86_64_avx512_base} -mavx512vnni)
set(UK_FLAGS_x86_64_avx512_bf16 ${UK_FLAGS_x86_64_avx512_base} -mavx512bf16)
set(UK_FLAGS_x86_64_avx512_fp16 ${UK_FLAGS_x86_64_avx512_base} -mavx512fp16)
set(UK_FLAGS_x86_64_amx_int8 ${UK_FLAGS_x86_64_avx512_base} -mamx-tile -mamx-int8)
set(UK_FLAGS_x86_64_amx_bf16 ${UK_FLAGS_x86_64_avx512_base} -mamx-tile -mamx-bf16)

# Each extension on top of Armv8.2, the first that may have it and the least for which GCC's
# <arm_neon.h> has its intrinsics. What 8.1 and 8.2 themselves add is for atomics, checksums and by
# intrinsics of its own: no compiler puts it into vector code.
set(UK_FLAGS_arm_64_neon -march=armv8-a)  # the baseline
set(UK_FLAGS_arm_64_fullfp16 -march=armv8.2-a+fp16)
set(UK_FLAGS_arm_64_fp16fml -march=armv8.2-a+fp16+fp16fml)
set(UK_FLAGS_arm_64_bf16 -march=armv8.2-a+bf16)
set(UK_FLAGS_arm_64_dotprod -march=armv8.2-a+dotprod)
set(UK_FLAGS_arm_64_i8mm -march=armv8.2-a+i8mm)

# What every object of the library is built with: it is linked into other people's binaries, with or
# without exceptions and unwinding, and what is written is what runs: GCC contracts even intrinsics,
# and a project around this one may have -ffast-math for its own code. That comes before these flags.
# Of the two below the order matters: Clang's -fno-fast-math permits contraction again.
set(UK_FP_FLAGS -fno-fast-math -ffp-contract=off)
set(UK_OBJECT_FLAGS -fPIC -fno-exceptions -fno-rtti -fno-stack-protector
    -fno-asynchronous-unwind-tables ${UK_FP_FLAGS} -ffunction-sections -fdata-sections)

# Tile functions are vector code by hand: the vectorizers would only undo choices made there.
set(UK_TILE_FLAGS -fno-tree-vectorize -fno-tree-slp-vectorize)
# A tile needs no symbol but its own. So no loop may become a call to memcpy or memset, and equal tiles
# may not be folded into one, which would make a program that calls one link both.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND UK_TILE_FLAGS -fno-tree-loop-distribute-patterns -fno-ipa-icf)
  # GCC 12's <immintrin.h> makes its undefined vectors by initializing a variable with itself, and
  # warns of it once it is inlined. Clang's warning stays on.
  list(APPEND UK_TILE_FLAGS -Wno-uninitialized -Wno-maybe-uninitialized)
  if(UK_ARCH STREQUAL "arm_64")
    # Before registers are given out GCC 12 moves loads up so far that accumulators take turns in
    # several registers, or spill. It does not do this on x86, and schedules once more after it.
    list(APPEND UK_TILE_FLAGS -fno-schedule-insns)
  endif()
else()
  list(APPEND UK_TILE_FLAGS -fno-builtin)
  # Clang 19 makes VPMADDWD and VPADDD of VPDPWSSD, to shorten a chain of sums. Tiles have chains
  # enough, and take up to a quarter longer for one instruction more.
  list(APPEND UK_FLAGS_x86_64_avx_vnni -mllvm -x86-machine-combiner=0)
  list(APPEND UK_FLAGS_x86_64_avx512_vnni -mllvm -x86-machine-combiner=0)
endif()
if(UK_SANITIZE MATCHES "undefined")
  # Pointer checks around every vector access: AddressSanitizer sees the access itself, and these
  # make unrolled tiles four times slower to compile.
  list(APPEND UK_TILE_FLAGS -fno-sanitize=null,object-size,pointer-overflow)
endif()
if(UK_SANITIZE MATCHES "address")
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # A call checks each vector access: its code beside each would take as long again to compile.
    list(APPEND UK_TILE_FLAGS -fsanitize-address-outline-instrumentation)
  endif()
endif()

# uk_add_isa(<arch> <isa>): every .cc of arch/<arch>/<isa>/, and every file generated for the level,
# joins the library with that level's flags.
function(uk_add_isa arch isa)
  set(target ukernel_${arch}_${isa})
  file(GLOB sources CONFIGURE_DEPENDS ${UK_GLOBBED_DIR}/arch/${arch}/${isa}/*.cc)
  set(generated ${UK_GENERATED_SOURCES})
  list(FILTER generated INCLUDE REGEX "/${arch}/${isa}/[^/]*$")
  if(NOT sources AND NOT generated)
    return()
  endif()
  add_library(${target} OBJECT ${sources} ${generated})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${target} PRIVATE
    ${UK_WARNING_FLAGS} ${UK_OBJECT_FLAGS} ${UK_TILE_FLAGS} ${UK_FLAGS_${arch}_${isa}})
  # Ops call mmt4d tiles by <symbol>_strided and by their forms (ukernel/tile.h).
  target_compile_definitions(${target} PRIVATE UK_STRIDED_TILES)
  target_sources(ukernel PRIVATE $<TARGET_OBJECTS:${target}>)
  set_property(TARGET ukernel APPEND PROPERTY UK_ISA_TARGETS ${target})
endfunction()
