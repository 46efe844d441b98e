# SPDX-License-Identifier: Apache-2.0
# The wheel (pyproject.toml): libunicon.so next to the Python files, and the command in bin, which
# finds it there. What they stand on is inside and hidden, or, where an archive cannot go into a
# shared library, lies beside; so they need nothing but the C library of this or a newer distribution.
# UNICON_BUNDLE=OFF is for packages of conda or of a distribution, which have those libraries anyway.

set(package unicon)
option(UNICON_BUNDLE "Put the libraries that unicon stands on into the wheel" ON)

# Sets OUT to whether all of ARCHIVE can go into a shared library (Debian builds some without PIC).
function(archive_fits archive out)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -shared -o ${PROJECT_BINARY_DIR}/archive.so
    -Wl,--whole-archive ${archive} -Wl,--no-whole-archive
    RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  file(REMOVE ${PROJECT_BINARY_DIR}/archive.so)
  if(EXISTS ${archive} AND result EQUAL 0)
    set(${out} ON PARENT_SCOPE)
  else()
    set(${out} OFF PARENT_SCOPE)
  endif()
endfunction()

# Installs a shared library under the name by which the loader looks for it.
function(install_beside library)
  execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${library} OUTPUT_VARIABLE headers)
  string(REGEX MATCH "SONAME +([^ \n]+)" found "${headers}")
  file(REAL_PATH ${library} real)
  install(FILES ${real} DESTINATION ${package} RENAME ${CMAKE_MATCH_1} COMPONENT python)
endfunction()

set(archives)
set(others)
foreach(library IN LISTS UNICON_DEPENDENCY_LIBRARIES)
  if(NOT library MATCHES "^/.*\\.so$")
    list(APPEND others ${library})
    continue()
  endif()
  if(NOT UNICON_BUNDLE)
    list(APPEND others ${library})
    continue()
  endif()
  string(REGEX REPLACE "\\.so$" ".a" archive ${library})
  archive_fits(${archive} fits)
  if(fits)
    message(STATUS "In the library: ${archive}")
    list(APPEND archives ${archive})
  else()
    message(STATUS "Beside the library: ${library}")
    list(APPEND others ${library})
    install_beside(${library})
  endif()
endforeach()
# OpenBLAS holds LAPACK, which is Fortran and needs a few functions of its runtime.
foreach(name libgfortran.a libquadmath.a)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=${name}
    OUTPUT_VARIABLE archive OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(IS_ABSOLUTE "${archive}" AND UNICON_BUNDLE)
    list(APPEND archives ${archive})
  endif()
endforeach()
# One file, one name: a wheel has no links.
set_property(TARGET unicon_shared PROPERTY VERSION)
set_property(TARGET unicon_shared PROPERTY SOVERSION)
set_target_properties(unicon_shared PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
set_property(TARGET unicon_shared PROPERTY LINK_LIBRARIES
  -Wl,--start-group ${archives} -Wl,--end-group ${others})
target_link_options(unicon_shared PRIVATE
  LINKER:--exclude-libs,ALL LINKER:--gc-sections LINKER:-s)
install(FILES $<TARGET_FILE:unicon_shared> DESTINATION ${package} COMPONENT python)

# The command uses public functions alone, so it needs no copy of its own of the library.
set(command_libraries ${JANSSON_LINK_LIBRARIES})
string(REGEX REPLACE "\\.so$" ".a" archive "${JANSSON_LINK_LIBRARIES}")
if(archive IN_LIST archives)
  set(command_libraries ${archive})
endif()
set_property(TARGET unicon_command PROPERTY LINK_LIBRARIES
  unicon_shared unicon_warnings unicon_posix ${command_libraries} Threads::Threads m)
target_link_options(unicon_command PRIVATE LINKER:--gc-sections LINKER:-s)
set_target_properties(unicon_command PROPERTIES
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/..")
install(PROGRAMS $<TARGET_FILE:unicon_command> DESTINATION ${package}/bin COMPONENT python)
install(FILES ${PROJECT_SOURCE_DIR}/python/_unicon_command.py DESTINATION . COMPONENT python)

if(NOT UNICON_BUNDLE)
  return()
endif()

# What the distribution says about the licence of each part; of zig, whose runtime is linked in by
# scripts/cc_glibc.sh, what its package says.
if(DEFINED ENV{ZIG_LICENSE})
  install(FILES $ENV{ZIG_LICENSE} DESTINATION ${package}/LICENSES RENAME zig.txt COMPONENT python)
endif()
foreach(part openblas lapacke jansson lbfgs gfortran random123)
  file(GLOB notes /usr/share/doc/lib${part}*-dev/copyright)
  list(SORT notes COMPARE NATURAL ORDER DESCENDING)
  list(LENGTH notes found)
  if(found GREATER 0)
    list(GET notes 0 note)
    install(FILES ${note} DESTINATION ${package}/LICENSES RENAME ${part}.txt COMPONENT python)
  else()
    message(WARNING "No licence note of ${part} found: add it before you pass the wheel on")
  endif()
endforeach()
