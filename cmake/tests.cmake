# SPDX-License-Identifier: Apache-2.0
# Every test is found by its file name; each runs in a scratch folder of its own.

set(test_environment "UNICON_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
if(TARGET unicon_command)
  list(APPEND test_environment "UNICON=$<TARGET_FILE:unicon_command>")
endif()

# Registers COMMAND as test NAME with one label.
function(unicon_test name label)
  set(scratch ${PROJECT_BINARY_DIR}/scratch/${name})
  file(MAKE_DIRECTORY ${scratch})
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${scratch})
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 600
    ENVIRONMENT "${test_environment}")
endfunction()

# The soft device: a plugin in plain C beside the tests, which load it as any other. Not installed.
add_library(unicon_soft MODULE tests/soft/soft.c)
target_include_directories(unicon_soft PRIVATE src)
target_link_libraries(unicon_soft PRIVATE unicon_warnings unicon_posix m)
set_target_properties(unicon_soft PROPERTIES
  OUTPUT_NAME unicon_soft LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
list(APPEND test_environment "UNICON_SOFT_FOLDER=${PROJECT_BINARY_DIR}/tests")

# tests/test_*.c: one cmocka program each. Other tests/*.c are shared by all of them.
file(GLOB test_sources CONFIGURE_DEPENDS tests/test_*.c)
file(GLOB helper_sources CONFIGURE_DEPENDS tests/*.c)
list(FILTER helper_sources EXCLUDE REGEX "/test_[^/]*\\.c$")
if(test_sources)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
  add_library(unicon_testing INTERFACE)
  target_include_directories(unicon_testing INTERFACE include src tests)
  target_include_directories(unicon_testing SYSTEM INTERFACE ${UNICON_DEPENDENCY_INCLUDES})
  target_link_libraries(unicon_testing INTERFACE
    unicon_static unicon_warnings unicon_posix PkgConfig::CMOCKA)
  if(helper_sources)
    add_library(test_helpers OBJECT ${helper_sources})
    target_link_libraries(test_helpers PRIVATE unicon_testing)
  endif()
endif()
foreach(source IN LISTS test_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  if(helper_sources)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:test_helpers>)
  endif()
  target_link_libraries(${name} PRIVATE unicon_testing)
  if(name STREQUAL test_tsne) # of the command, not of the library
    target_sources(${name} PRIVATE programs/tsne.c)
    target_include_directories(${name} PRIVATE programs)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_dependencies(${name} unicon_soft)
  unicon_test(${name} unit ${name})
endforeach()

# The same on a device, as far as they tell of results and not of the CPU: on the soft one here, and
# on others by hand (UNICON_TEST_DEVICE=cuda ctest -L unit).
foreach(name IN ITEMS bias search metrics stats map map_model map_random map_far map_near fit model
    golden solve loss loss_identities weights refine regress check faults_fit)
  unicon_test(test_${name}_soft unit test_${name})
  set_property(TEST test_${name}_soft APPEND PROPERTY ENVIRONMENT "UNICON_TEST_DEVICE=soft")
endforeach()

# tests/cli/test_*.sh: run the command as a user does ($UNICON).
find_program(BASH bash REQUIRED)
file(GLOB cli_tests CONFIGURE_DEPENDS tests/cli/test_*.sh)
if(TARGET unicon_command)
  foreach(script IN LISTS cli_tests)
    get_filename_component(name ${script} NAME_WE)
    string(REGEX REPLACE "^test_" "cli_" name ${name})
    unicon_test(${name} cli ${BASH} ${script})
  endforeach()
endif()

# unicon-mpi beside unicon. The launcher and MPI itself leak by their own account, so instrumented
# builds have tests/test_processes.c alone.
if(UNICON_MPI_FOUND AND MPIEXEC_EXECUTABLE AND NOT UNICON_INSTRUMENTED)
  foreach(part IN ITEMS "same 2" "same 4" fail)
    string(REPLACE " " "_" name ${part})
    separate_arguments(part)
    unicon_test(mpi_${name} mpi ${BASH} ${PROJECT_SOURCE_DIR}/tests/mpi/test_mpi.sh ${part})
    set_property(TEST mpi_${name} APPEND PROPERTY ENVIRONMENT
      "UNICON_MPI=$<TARGET_FILE:unicon_mpi>" "MPIRUN=${MPIEXEC_EXECUTABLE}")
    set_tests_properties(mpi_${name} PROPERTIES PROCESSORS 2)
  endforeach()
elseif(UNICON_MPI_FOUND)
  message(STATUS "mpirun was not found, or this build is instrumented: unicon-mpi is not tested")
endif()

# make demo
if(TARGET unicon_command)
  unicon_test(demo cli ${BASH} ${PROJECT_SOURCE_DIR}/scripts/demo.sh)
  set_property(TEST demo APPEND PROPERTY ENVIRONMENT
    "DEMO_DIR=${PROJECT_BINARY_DIR}/scratch/demo")
endif()

# tests/fuzz/fuzz_*.c: replay the stored inputs of tests/fuzz/corpus/fuzz_*, or fuzz.
file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
foreach(source IN LISTS fuzz_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_include_directories(${name} PRIVATE src tests)
  target_include_directories(${name} SYSTEM PRIVATE ${UNICON_DEPENDENCY_INCLUDES})
  target_link_libraries(${name} PRIVATE unicon_static unicon_posix)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  if(name STREQUAL fuzz_report) # the page is made by the command, not by the library
    target_sources(${name} PRIVATE programs/report_page.c programs/report_lookup.c
      ${UNICON_REPORT})
    target_include_directories(${name} PRIVATE programs)
  endif()
  if(UNICON_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined)
  else()
    target_sources(${name} PRIVATE tests/fuzz/replay.c)
    unicon_test(${name} fuzz ${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  endif()
endforeach()

# examples/*.c: a user's program, so the shared library and the public header only. What they read
# is written into their folder by examples/data.sh, if there is one.
file(GLOB example_sources CONFIGURE_DEPENDS examples/*.c)
set(example_folder ${PROJECT_BINARY_DIR}/scratch/examples)
file(MAKE_DIRECTORY ${example_folder})
if(example_sources AND EXISTS ${PROJECT_SOURCE_DIR}/examples/data.sh AND TARGET unicon_command)
  unicon_test(example_data example ${BASH} ${PROJECT_SOURCE_DIR}/examples/data.sh)
  set_tests_properties(example_data PROPERTIES
    FIXTURES_SETUP example_data WORKING_DIRECTORY ${example_folder})
endif()
foreach(source IN LISTS example_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(example_${name} ${source})
  target_link_libraries(example_${name} PRIVATE unicon_shared unicon_warnings)
  set_target_properties(example_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
  unicon_test(example_${name} example example_${name})
  set_tests_properties(example_${name} PROPERTIES
    FIXTURES_REQUIRED example_data WORKING_DIRECTORY ${example_folder})
endforeach()

# What is installed works from outside, and exports what the header declares.
if(NOT UNICON_INSTRUMENTED)
  unicon_test(install install ${BASH} ${PROJECT_SOURCE_DIR}/tests/install/run.sh ${PROJECT_BINARY_DIR})
endif()
