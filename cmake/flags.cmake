# SPDX-License-Identifier: Apache-2.0
# Warnings, POSIX names and instrumentation. Sets UNICON_X86 and UNICON_INSTRUMENTED.

add_library(unicon_warnings INTERFACE)
target_compile_options(unicon_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
  -Wformat=2 -Wundef -Wvla $<$<BOOL:${UNICON_WERROR}>:-Werror>)

add_library(unicon_posix INTERFACE)
target_compile_definitions(unicon_posix INTERFACE _DEFAULT_SOURCE _POSIX_C_SOURCE=200809L)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(UNICON_X86 ON)
else()
  set(UNICON_X86 OFF)
endif()

set(UNICON_INSTRUMENTED OFF)
if(UNICON_SANITIZE)
  add_compile_options(-fsanitize=${UNICON_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${UNICON_SANITIZE})
  set(UNICON_INSTRUMENTED ON)
endif()
if(UNICON_COVERAGE)
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
  set(UNICON_INSTRUMENTED ON)
endif()
if(UNICON_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "UNICON_FUZZ needs clang: configure with -DCMAKE_C_COMPILER=clang")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
    -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=address,undefined)
  set(UNICON_INSTRUMENTED ON)
endif()
