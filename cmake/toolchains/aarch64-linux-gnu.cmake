# What the two toolchains for 64-bit Arm share: where the target's libraries are, and what runs its
# programs.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)

# Debian's packages of cpuinfo for the target cannot be installed beside the host's; `cmake/dev.sh
# arm` unpacks them here.
get_filename_component(UK_ARM_PACKAGES ${CMAKE_CURRENT_LIST_DIR}/../../build/arm-packages ABSOLUTE)
list(APPEND CMAKE_FIND_ROOT_PATH ${UK_ARM_PACKAGES})
set(ENV{PKG_CONFIG_LIBDIR} ${UK_ARM_PACKAGES}/usr/lib/aarch64-linux-gnu/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${UK_ARM_PACKAGES})
