# SPDX-License-Identifier: Apache-2.0
# unicon-mpi: the commands fit, eval and search in the processes of an MPI job. The library knows
# nothing of MPI; the program gives it a few callbacks.

set_property(CACHE UNICON_MPI PROPERTY STRINGS auto ON OFF)
set(UNICON_MPI_FOUND OFF)
if(NOT UNICON_MPI OR NOT TARGET unicon_command OR SKBUILD)
  return()
endif()
find_package(MPI QUIET COMPONENTS C)
if(NOT MPI_C_FOUND)
  if(NOT UNICON_MPI STREQUAL "auto")
    message(FATAL_ERROR "UNICON_MPI is ${UNICON_MPI}, but no MPI was found "
      "(Debian: libopenmpi-dev openmpi-bin); auto builds without it")
  endif()
  message(STATUS "MPI was not found: unicon-mpi is not built")
  return()
endif()
set(UNICON_MPI_FOUND ON)

add_library(unicon_communicator STATIC programs/mpi/communicator.c)
target_link_libraries(unicon_communicator
  PUBLIC unicon_static MPI::MPI_C PRIVATE unicon_warnings unicon_posix)

set(mpi_sources ${program_sources})
list(FILTER mpi_sources EXCLUDE REGEX "/start\\.c$")
add_executable(unicon_mpi programs/mpi/start_mpi.c ${mpi_sources} ${UNICON_REPORT}
  ${UNICON_MIGRATE_PAGE})
add_dependencies(unicon_mpi unicon_command) # one makes the pages for both
target_include_directories(unicon_mpi PRIVATE programs)
set_target_properties(unicon_mpi PROPERTIES
  OUTPUT_NAME unicon-mpi RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_link_libraries(unicon_mpi PRIVATE
  unicon_communicator unicon_static unicon_warnings unicon_posix ${JANSSON_LIBRARIES})
