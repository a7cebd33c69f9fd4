# The compiler flags of each ISA level: the only place that knows them. What a level needs of the CPU
# is in ukernel/isa.inc.

set(UK_FLAGS_x86_64_avx2_fma -mavx2 -mfma -mf16c)
set(UK_FLAGS_x86_64_avx512_base
    ${UK_FLAGS_x86_64_avx2_fma} -mavx512f -mavx512cd -mavx512vl -mavx512dq -mavx512bw)
set(UK_FLAGS_x86_64_avx512_vnni ${UK_FLAGS_x86_64_avx512_base} -mavx512vnni)
set(UK_FLAGS_x86_64_avx512_bf16 ${UK_FLAGS_x86_64_avx512_base} -mavx512bf16)

# What every object of the library is built with: it is linked into other people's binaries, with or
# without exceptions and unwinding, and what is written is what runs (GCC contracts even intrinsics).
# Its arithmetic is by hand, so the vectorizers would only undo choices made there.
set(UK_OBJECT_FLAGS -fPIC -fno-exceptions -fno-rtti -fno-stack-protector
    -fno-asynchronous-unwind-tables -ffp-contract=off -ffunction-sections -fdata-sections)
set(UK_TILE_FLAGS -fno-tree-vectorize -fno-tree-slp-vectorize)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Folding two equal tiles into one symbol would make a program that calls one link both.
  list(APPEND UK_TILE_FLAGS -fno-ipa-icf)
endif()

# uk_add_isa(<arch> <isa>): every .cc of arch/<arch>/<isa>/ joins the library, with that level's flags.
function(uk_add_isa arch isa)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/arch/${arch}/${isa}/*.cc)
  add_library(ukernel_${arch}_${isa} OBJECT ${sources})
  target_include_directories(ukernel_${arch}_${isa} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(ukernel_${arch}_${isa} PRIVATE
    ${UK_WARNING_FLAGS} ${UK_OBJECT_FLAGS} ${UK_TILE_FLAGS} ${UK_FLAGS_${arch}_${isa}})
  target_sources(ukernel PRIVATE $<TARGET_OBJECTS:ukernel_${arch}_${isa}>)
endfunction()
