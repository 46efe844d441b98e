# SPDX-License-Identifier: Apache-2.0
# The man page and the shell completions come from the command itself, so from the option table.
# Instrumented builds do without: they are not installed.

if(UNICON_INSTRUMENTED OR CMAKE_CROSSCOMPILING)
  return()
endif()

find_program(SCDOC scdoc)
set(UNICON_MANUAL_DIR ${PROJECT_BINARY_DIR}/manual)
add_custom_command(OUTPUT ${UNICON_MANUAL_DIR}/stamp
  COMMAND ${CMAKE_COMMAND} -DUNICON=$<TARGET_FILE:unicon_command> -DSCDOC=${SCDOC}
    -DOUT=${UNICON_MANUAL_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/write_manual.cmake
  COMMAND ${CMAKE_COMMAND} -E touch ${UNICON_MANUAL_DIR}/stamp
  DEPENDS unicon_command cmake/write_manual.cmake
  COMMENT "Writing the man page and the shell completions" VERBATIM)
add_custom_target(unicon_manual ALL DEPENDS ${UNICON_MANUAL_DIR}/stamp)
