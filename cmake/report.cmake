# SPDX-License-Identifier: Apache-2.0
# The pages of a report and of a migration as C. Sets UNICON_REPORT and UNICON_MIGRATE_PAGE, which
# need programs/ among their include folders.

# unicon_page(NAME VARIABLE FILE...): the files are those that the page takes in.
function(unicon_page name variable)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/programs/ OUTPUT_VARIABLE parts)
  set(out ${PROJECT_BINARY_DIR}/${name}.c)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DIN=${PROJECT_SOURCE_DIR}/programs/${name} -DOUT=${out}
      -P ${PROJECT_SOURCE_DIR}/cmake/template.cmake
    DEPENDS ${PROJECT_SOURCE_DIR}/programs/${name} ${PROJECT_SOURCE_DIR}/cmake/template.cmake
      ${parts}
    COMMENT "Turning ${name} into C" VERBATIM)
  set(${variable} ${out} PARENT_SCOPE)
endfunction()

unicon_page(report.html report_page report.css report.js)
unicon_page(report_explore.html report_explore)
set(UNICON_REPORT ${report_page} ${report_explore})
unicon_page(migrate.html UNICON_MIGRATE_PAGE)
