# SPDX-License-Identifier: Apache-2.0
# Finds the libraries, and shows by running a small program that BLAS and LAPACKE answer rightly.
# Sets UNICON_DEPENDENCY_INCLUDES and UNICON_DEPENDENCY_LIBRARIES.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(OPENBLAS REQUIRED openblas)
pkg_check_modules(LAPACKE lapacke) # some builds of OpenBLAS hold LAPACKE themselves
pkg_check_modules(JANSSON REQUIRED jansson)
pkg_check_modules(LBFGS liblbfgs)
if(NOT LBFGS_FOUND)
  find_library(LBFGS_LIBRARIES lbfgs REQUIRED)
  find_path(LBFGS_INCLUDE_DIRS lbfgs.h REQUIRED)
endif()
find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)

set(UNICON_DEPENDENCY_INCLUDES ${OPENBLAS_INCLUDE_DIRS} ${LAPACKE_INCLUDE_DIRS}
  ${JANSSON_INCLUDE_DIRS} ${LBFGS_INCLUDE_DIRS} ${RANDOM123_INCLUDE_DIR})
list(REMOVE_DUPLICATES UNICON_DEPENDENCY_INCLUDES)
# OpenBLAS comes first, so that it also serves the BLAS calls of LAPACKE.
set(UNICON_DEPENDENCY_LIBRARIES ${OPENBLAS_LINK_LIBRARIES} ${LAPACKE_LINK_LIBRARIES}
  ${JANSSON_LINK_LIBRARIES} ${LBFGS_LINK_LIBRARIES})
if(NOT LBFGS_FOUND)
  list(APPEND UNICON_DEPENDENCY_LIBRARIES ${LBFGS_LIBRARIES})
endif()
list(APPEND UNICON_DEPENDENCY_LIBRARIES Threads::Threads ${CMAKE_DL_LIBS} m)

if(NOT UNICON_BLAS_CHECKED AND NOT CMAKE_CROSSCOMPILING)
  message(STATUS "Checking BLAS and LAPACKE")
  try_run(blas_exit blas_compiled
    ${PROJECT_BINARY_DIR}/check_blas ${PROJECT_SOURCE_DIR}/cmake/check_blas.c
    CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${UNICON_DEPENDENCY_INCLUDES}"
    LINK_LIBRARIES ${UNICON_DEPENDENCY_LIBRARIES}
    COMPILE_OUTPUT_VARIABLE blas_compile_output
    RUN_OUTPUT_VARIABLE blas_output)
  if(NOT blas_compiled)
    message(FATAL_ERROR "A program with cblas.h and lapacke.h does not build:\n${blas_compile_output}")
  elseif(NOT blas_exit EQUAL 0)
    message(FATAL_ERROR "BLAS does not work (exit ${blas_exit}): ${blas_output}")
  endif()
  string(STRIP "${blas_output}" blas_output)
  message(STATUS "Checking BLAS and LAPACKE - ${blas_output}")
  set(UNICON_BLAS_CHECKED ON CACHE INTERNAL "The BLAS check passed")
endif()
