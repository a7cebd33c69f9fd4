# What is installed: headers, archives, a CMake package, a pkg-config file for each archive, and the
# generator.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(uk_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ukernel)

install(FILES ukernel/ukernel.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ukernel)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(UK_GENERATE)  # without Python there is nothing to write it
  install(FILES ${UK_GENERATED_DIR}/${UK_ARCH}/tiles.json
    DESTINATION ${CMAKE_INSTALL_DATADIR}/ukernel)
  # `python3 -m generator`, beside the sources that tiles are built from, as in this tree.
  install(DIRECTORY generator arch DESTINATION ${CMAKE_INSTALL_DATADIR}/ukernel
    FILES_MATCHING PATTERN "*.py" PATTERN "*.j2" PATTERN "*.cc" PATTERN "*.h" PATTERN "*.inc"
    PATTERN __pycache__ EXCLUDE)
  install(DIRECTORY ukernel DESTINATION ${CMAKE_INSTALL_DATADIR}/ukernel
    FILES_MATCHING PATTERN "*.h" PATTERN "*.inc" PATTERN host EXCLUDE PATTERN iree EXCLUDE)
  install(FILES cmake/UkIsa.cmake DESTINATION ${CMAKE_INSTALL_DATADIR}/ukernel/cmake)
endif()
if(TARGET ukernel_conformance)
  install(TARGETS ukernel_conformance EXPORT ukernelConformanceTargets
    PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ukernel)
  install(TARGETS ukernel_conformance_tool)
  install(EXPORT ukernelConformanceTargets NAMESPACE ukernel:: DESTINATION ${uk_package_dir})
endif()

set(uk_pc_packages ukernel)
# Several export sets, so that ukernel::ukernel is there where cpuinfo is not.
if(TARGET ukernel_cpu)
  list(APPEND uk_pc_packages ukernel-cpu)
  install(TARGETS ukernel_cpu EXPORT ukernelCpuTargets)
  install(EXPORT ukernelCpuTargets NAMESPACE ukernel:: DESTINATION ${uk_package_dir})
endif()
if(TARGET ukernel_iree)
  list(APPEND uk_pc_packages ukernel-iree)
  install(TARGETS ukernel_iree EXPORT ukernelTargets)
  install(FILES ukernel/iree/iree_ukernel.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ukernel/iree)
endif()

install(TARGETS ukernel EXPORT ukernelTargets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT ukernelTargets NAMESPACE ukernel:: DESTINATION ${uk_package_dir})
configure_package_config_file(cmake/ukernelConfig.cmake.in
  ${PROJECT_BINARY_DIR}/ukernelConfig.cmake INSTALL_DESTINATION ${uk_package_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/ukernelConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ukernelConfig.cmake
  ${PROJECT_BINARY_DIR}/ukernelConfigVersion.cmake DESTINATION ${uk_package_dir})

# The prefix is written relative to the .pc file, so that an install tree can be moved, unless a
# folder of it was given as an absolute path.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(uk_pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH uk_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(PREPEND uk_pc_prefix "\${pcfiledir}/")
endif()
foreach(dir IN ITEMS LIBDIR INCLUDEDIR)
  set(uk_pc_${dir} "${CMAKE_INSTALL_${dir}}")
  if(NOT IS_ABSOLUTE "${uk_pc_${dir}}")
    string(PREPEND uk_pc_${dir} "\${prefix}/")
  endif()
endforeach()
foreach(package IN LISTS uk_pc_packages)
  configure_file(cmake/${package}.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
