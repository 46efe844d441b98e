# SPDX-License-Identifier: Apache-2.0
# Script: writes unicon.1, unicon.bash, _unicon and unicon.fish into OUT.
# Exit 2 of the command means that it does not know the flag: that file is left out.

file(MAKE_DIRECTORY ${OUT})

function(write name)
  execute_process(COMMAND ${UNICON} ${ARGN} OUTPUT_FILE ${OUT}/${name}.new
    ERROR_VARIABLE error RESULT_VARIABLE result)
  if(result EQUAL 0)
    file(RENAME ${OUT}/${name}.new ${OUT}/${name})
    return()
  endif()
  file(REMOVE ${OUT}/${name}.new ${OUT}/${name})
  list(JOIN ARGN " " arguments)
  if(NOT result EQUAL 2)
    message(FATAL_ERROR "unicon ${arguments} failed (${result}): ${error}")
  endif()
  message(STATUS "unicon ${arguments} is not there, ${name} is left out")
endfunction()

write(unicon.bash --completion bash)
write(_unicon --completion zsh)
write(unicon.fish --completion fish)
write(unicon.1.scd --man)

file(REMOVE ${OUT}/unicon.1)
if(EXISTS ${OUT}/unicon.1.scd AND SCDOC)
  execute_process(COMMAND ${SCDOC} INPUT_FILE ${OUT}/unicon.1.scd OUTPUT_FILE ${OUT}/unicon.1
    ERROR_VARIABLE error RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    file(REMOVE ${OUT}/unicon.1)
    message(FATAL_ERROR "scdoc does not accept the output of unicon --man: ${error}")
  endif()
endif()
