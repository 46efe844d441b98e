# SPDX-License-Identifier: Apache-2.0
# Headers, libraries, pkg-config file, CMake package, command, man page, shell completions. All
# paths in the installed files are relative, so the prefix may be chosen or moved afterwards.

if(SKBUILD) # a Python wheel
  include(cmake/python.cmake)
  return()
endif()

include(CMakePackageConfigHelpers)

set(UNICON_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/unicon)
set(UNICON_PC_DIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES include/unicon/unicon.h include/unicon/migrate.h include/unicon/stats.h
  include/unicon/tools.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/unicon)
install(TARGETS unicon_shared EXPORT unicon_targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS unicon_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

file(RELATIVE_PATH UNICON_PC_TO_PREFIX /prefix/${UNICON_PC_DIR} /prefix)
string(REGEX REPLACE "/$" "" UNICON_PC_TO_PREFIX ${UNICON_PC_TO_PREFIX})
set(UNICON_PC_REQUIRES "openblas jansson")
set(UNICON_PC_LIBS "-pthread -lm")
if(CMAKE_DL_LIBS)
  string(PREPEND UNICON_PC_LIBS "-l${CMAKE_DL_LIBS} ")
endif()
if(LAPACKE_FOUND)
  string(APPEND UNICON_PC_REQUIRES " lapacke")
endif()
if(LBFGS_FOUND)
  string(APPEND UNICON_PC_REQUIRES " liblbfgs")
else()
  string(PREPEND UNICON_PC_LIBS "-llbfgs ")
endif()
configure_file(cmake/unicon.pc.in unicon.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/unicon.pc DESTINATION ${UNICON_PC_DIR})

install(EXPORT unicon_targets FILE uniconTargets.cmake NAMESPACE unicon::
  DESTINATION ${UNICON_CMAKE_DIR})
configure_package_config_file(cmake/uniconConfig.cmake.in uniconConfig.cmake
  INSTALL_DESTINATION ${UNICON_CMAKE_DIR} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/uniconConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/uniconConfig.cmake ${PROJECT_BINARY_DIR}/uniconConfigVersion.cmake
  DESTINATION ${UNICON_CMAKE_DIR})

if(TARGET unicon_command)
  install(TARGETS unicon_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET unicon_mpi)
  install(TARGETS unicon_mpi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET unicon_manual)
  install(FILES ${UNICON_MANUAL_DIR}/unicon.1 OPTIONAL
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${UNICON_MANUAL_DIR}/unicon.bash OPTIONAL RENAME unicon
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${UNICON_MANUAL_DIR}/_unicon OPTIONAL
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${UNICON_MANUAL_DIR}/unicon.fish OPTIONAL
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
