# SPDX-License-Identifier: Apache-2.0
# The wheel (pyproject.toml): libunicon.so next to the Python files, with everything it stands on
# inside it and hidden, so that it needs nothing but the C library of this or a newer distribution.
# A library without a static archive stays a shared one, and a warning says so.

set(archives)
set(plain)
foreach(library IN LISTS UNICON_DEPENDENCY_LIBRARIES)
  string(REGEX REPLACE "\\.so$" ".a" archive "${library}")
  if(archive STREQUAL library)
    list(APPEND plain ${library})
  elseif(EXISTS ${archive})
    list(APPEND archives ${archive})
  else()
    message(WARNING "There is no ${archive}: the wheel will need ${library} where it runs")
    list(APPEND plain ${library})
  endif()
endforeach()
# OpenBLAS holds LAPACK, which is Fortran.
foreach(name libgfortran.a libquadmath.a)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=${name}
    OUTPUT_VARIABLE archive OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(IS_ABSOLUTE "${archive}")
    list(APPEND archives ${archive})
  endif()
endforeach()
set_property(TARGET unicon_shared PROPERTY LINK_LIBRARIES
  -Wl,--start-group ${archives} -Wl,--end-group ${plain})
target_link_options(unicon_shared PRIVATE
  -static-libgcc LINKER:--exclude-libs,ALL LINKER:--gc-sections LINKER:-s)

set(package ${SKBUILD_PROJECT_NAME})
install(FILES $<TARGET_FILE:unicon_shared> DESTINATION ${package} RENAME libunicon.so
  COMPONENT python)

# What the distribution says about the licence of each part.
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
