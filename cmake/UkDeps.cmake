# The packages, each with the name to install it by when it is missing.

find_package(PkgConfig)
if(NOT PkgConfig_FOUND)
  message(FATAL_ERROR "ukernel needs pkg-config (Debian: pkg-config)")
endif()
# Debian's cpuinfo ships a CMake package with a wrong path in it, and a pkg-config file that works.
pkg_check_modules(cpuinfo IMPORTED_TARGET libcpuinfo)
if(NOT cpuinfo_FOUND)
  message(FATAL_ERROR "ukernel::cpu needs cpuinfo (Debian: libcpuinfo-dev)")
endif()

if(UK_BUILD_TESTS)
  find_package(GTest)
  if(NOT GTest_FOUND)
    message(FATAL_ERROR "UK_BUILD_TESTS needs GoogleTest (Debian: libgtest-dev)")
  endif()
endif()
if(UK_BUILD_BENCH)
  find_package(benchmark)
  if(NOT benchmark_FOUND)
    message(FATAL_ERROR "UK_BUILD_BENCH needs Google Benchmark (Debian: libbenchmark-dev)")
  endif()
endif()
