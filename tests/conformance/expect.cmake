# Runs a command and checks its exit code and output, which ctest alone does one of:
#   cmake -DEXIT=<code> -DOUTPUT=<regex> [-DEMULATOR=<command>] -P expect.cmake -- <command> [args]...
# An emulator is not part of the command, as cmake would take its options for its own.
foreach(i RANGE 1 ${CMAKE_ARGC})
  if(CMAKE_ARGV${i} STREQUAL "--")
    set(command_begins ON)
  elseif(command_begins AND i LESS CMAKE_ARGC)
    list(APPEND command "${CMAKE_ARGV${i}}")
  endif()
endforeach()
separate_arguments(emulator UNIX_COMMAND "${EMULATOR}")
execute_process(COMMAND ${emulator} ${command} RESULT_VARIABLE exit OUTPUT_VARIABLE out ERROR_VARIABLE err)
message("${out}${err}")
if(NOT exit STREQUAL EXIT)
  message(FATAL_ERROR "exit code ${exit}, not ${EXIT}")
endif()
if(NOT "${out}${err}" MATCHES "${OUTPUT}")
  message(FATAL_ERROR "the output does not match ${OUTPUT}")
endif()
# A wrong command line gets one line, on stderr.
if(EXIT EQUAL 2 AND NOT (out STREQUAL "" AND err MATCHES "^[^\n]+\n$"))
  message(FATAL_ERROR "not one line on stderr")
endif()
