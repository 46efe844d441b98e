# SPDX-License-Identifier: Apache-2.0
# The CUDA plugin on the CPU, for tests where there is no GPU (tests/emulated/emulated.h): needs the
# headers of CUDA, a C++ compiler and Python, no nvcc.
enable_language(CXX)
find_package(CUDAToolkit 12.4 REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

set(emulated_folder ${PROJECT_BINARY_DIR}/tests/emulated)
file(GLOB emulated_from CONFIGURE_DEPENDS src/device/cuda/*.cu src/device/cuda/*.cuh)
foreach(from IN LISTS emulated_from)
  string(REGEX REPLACE ".*/(.*)\\.cu$" "\\1.cpp" to ${from})
  string(REGEX REPLACE ".*/" "" to ${to})
  add_custom_command(OUTPUT ${emulated_folder}/${to} DEPENDS ${from} tests/emulated/translate.py
    COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/emulated/translate.py
      ${from} ${emulated_folder}/${to} VERBATIM)
  list(APPEND emulated_sources ${emulated_folder}/${to})
endforeach()
set(emulated_check ${emulated_sources})
list(FILTER emulated_check INCLUDE REGEX "/(check[^/]*|clock)\\.cpp$")
list(FILTER emulated_sources EXCLUDE REGEX "/(check[^/]*|clock)\\.cpp$")

add_library(unicon_emulated_objects OBJECT ${emulated_sources} tests/emulated/emulated.cpp
  tests/emulated/libraries.cpp)
target_include_directories(unicon_emulated_objects PUBLIC src ${emulated_folder})
target_include_directories(unicon_emulated_objects SYSTEM PRIVATE
  ${CUDAToolkit_INCLUDE_DIRS} ${UNICON_DEPENDENCY_INCLUDES})
# Kernels look at memory as other types than it was written as.
set(emulated_options -O2 -fno-strict-aliasing -Wno-unknown-pragmas
  "SHELL:-include ${PROJECT_SOURCE_DIR}/tests/emulated/emulated.h")
target_compile_options(unicon_emulated_objects PRIVATE ${emulated_options})
target_compile_definitions(unicon_emulated_objects PRIVATE
  UNICON_CUDA_FAULTS UNICON_CUDA_LEAST_FLOPS=0)
target_compile_features(unicon_emulated_objects PRIVATE cxx_std_17)
set_target_properties(unicon_emulated_objects PROPERTIES
  CXX_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)

# The same name as the real one, in a folder of its own.
add_library(unicon_emulated MODULE $<TARGET_OBJECTS:unicon_emulated_objects>)
set_target_properties(unicon_emulated PROPERTIES
  OUTPUT_NAME unicon_cuda LIBRARY_OUTPUT_DIRECTORY ${emulated_folder}/lib)
target_link_libraries(unicon_emulated PRIVATE ${UNICON_DEPENDENCY_LIBRARIES})
if(TARGET unicon_soft) # tests load it whatever they run on
  add_custom_command(TARGET unicon_emulated POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink
    $<TARGET_FILE:unicon_soft> ${emulated_folder}/lib/$<TARGET_FILE_NAME:unicon_soft>)
endif()

add_executable(cuda_check_emulated ${emulated_check} $<TARGET_OBJECTS:unicon_emulated_objects>)
target_include_directories(cuda_check_emulated PRIVATE
  $<TARGET_PROPERTY:unicon_emulated_objects,INTERFACE_INCLUDE_DIRECTORIES>)
target_include_directories(cuda_check_emulated SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_compile_options(cuda_check_emulated PRIVATE ${emulated_options})
target_compile_features(cuda_check_emulated PRIVATE cxx_std_17)
target_link_libraries(cuda_check_emulated PRIVATE ${UNICON_DEPENDENCY_LIBRARIES})
