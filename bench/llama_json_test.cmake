# cmake -DTOOL=<llama_layers> -P: its JSON on standard output parses and has a row per product asked.
#
# Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
execute_process(
  COMMAND ${TOOL} --types f32,s8 --m 1,3 --layers values --repeat 1 --threads 2 --json
  OUTPUT_VARIABLE json RESULT_VARIABLE result)
string(JSON count ERROR_VARIABLE error LENGTH "${json}" rows)
if(error OR NOT count EQUAL 4)
  message(FATAL_ERROR "not the JSON expected: ${error} ${count}\n${json}")
endif()
if(result EQUAL 77)
  message("no tile for anything asked")
elseif(NOT result EQUAL 0)
  message(FATAL_ERROR "exit code ${result}\n${json}")
endif()
