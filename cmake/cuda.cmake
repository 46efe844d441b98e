# SPDX-License-Identifier: Apache-2.0
# The CUDA plugin, libunicon_cuda.so, found at run time beside the library (docs/gpu.md). Nothing
# else of the build needs or sees CUDA.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  # code for A100 and H100/H200, and PTX that the driver compiles for what is newer
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
endif()
enable_language(CUDA)
find_package(CUDAToolkit 12.4 REQUIRED)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)

file(GLOB cuda_sources CONFIGURE_DEPENDS src/device/cuda/*.cu)
set(cuda_check ${cuda_sources})
list(FILTER cuda_sources EXCLUDE REGEX "/(check[^/]*|clock)\\.cu$")
list(FILTER cuda_check INCLUDE REGEX "/(check[^/]*|clock)\\.cu$")

add_library(unicon_cuda_objects OBJECT ${cuda_sources})
target_include_directories(unicon_cuda_objects PRIVATE src)
target_compile_options(unicon_cuda_objects PRIVATE
  $<$<BOOL:${UNICON_WERROR}>:--Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Werror>)
set_target_properties(unicon_cuda_objects PROPERTIES CUDA_VISIBILITY_PRESET hidden)
option(UNICON_CUDA_FAULTS "Let tests make calls of the CUDA plugin fail (tests/test_device_faults.c)" OFF)
if(UNICON_CUDA_FAULTS)
  target_compile_definitions(unicon_cuda_objects PRIVATE UNICON_CUDA_FAULTS)
endif()

add_library(unicon_cuda MODULE $<TARGET_OBJECTS:unicon_cuda_objects>)
set_target_properties(unicon_cuda PROPERTIES
  OUTPUT_NAME unicon_cuda LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
  CUDA_RUNTIME_LIBRARY Static LINKER_LANGUAGE CUDA)
target_link_libraries(unicon_cuda PRIVATE CUDA::cublas CUDA::cusolver)
target_link_options(unicon_cuda PRIVATE LINKER:--no-undefined LINKER:--exclude-libs,ALL)
option(UNICON_CUDA_WHEEL "Build the CUDA plugin as its wheel has it (scripts/wheels.sh --cuda)" OFF)
if(UNICON_CUDA_WHEEL)
  # NVIDIA's wheels lie beside it: one folder from CUDA 13 on, one for each library before.
  set(beside "$ORIGIN/../nvidia")
  set(folders "${beside}/cu${CUDAToolkit_VERSION_MAJOR}/lib")
  if(CUDAToolkit_VERSION_MAJOR LESS 13)
    set(folders "${beside}/cublas/lib" "${beside}/cusolver/lib" "${beside}/cuda_runtime/lib")
  endif()
  set_target_properties(unicon_cuda PROPERTIES CUDA_RUNTIME_LIBRARY Shared
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${folders}")
  target_link_options(unicon_cuda PRIVATE LINKER:-s)
endif()
install(TARGETS unicon_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

# Checks of every kernel, and their times; without a GPU it says so and is skipped.
add_executable(cuda_check ${cuda_check} $<TARGET_OBJECTS:unicon_cuda_objects>)
target_compile_options(cuda_check PRIVATE --extended-lambda)
target_include_directories(cuda_check PRIVATE src)
set_target_properties(cuda_check PROPERTIES CUDA_RUNTIME_LIBRARY Static)
target_link_libraries(cuda_check PRIVATE CUDA::cublas CUDA::cusolver)
if(UNICON_TESTS)
  add_test(NAME cuda_check COMMAND cuda_check)
  set_tests_properties(cuda_check PROPERTIES LABELS unit SKIP_RETURN_CODE 77 TIMEOUT 300)
endif()
