# SPDX-License-Identifier: Apache-2.0
# The page of a report as C. Sets UNICON_REPORT, which needs programs/ among its include folders.

set(UNICON_REPORT ${PROJECT_BINARY_DIR}/report.html.c)
add_custom_command(OUTPUT ${UNICON_REPORT}
  COMMAND ${CMAKE_COMMAND} -DIN=${PROJECT_SOURCE_DIR}/programs/report.html -DOUT=${UNICON_REPORT}
    -P ${PROJECT_SOURCE_DIR}/cmake/template.cmake
  DEPENDS ${PROJECT_SOURCE_DIR}/programs/report.html ${PROJECT_SOURCE_DIR}/cmake/template.cmake
  COMMENT "Turning report.html into C" VERBATIM)
