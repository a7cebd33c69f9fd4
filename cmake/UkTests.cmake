# Tests that are not GoogleTest's.

# uk_add_skipped_test(<name> <reason>): shows what this build cannot test.
function(uk_add_skipped_test name reason)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${reason}")
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: ")
endfunction()

# uk_add_python_test(<name> <script> [arguments]...): on a Python that has Jinja2, skipped without one.
function(uk_add_python_test name script)
  if(NOT UK_PYTHON)
    uk_add_skipped_test(${name} "no Python with Jinja2 (Debian: python3-jinja2)")
    return()
  endif()
  add_test(NAME ${name} COMMAND ${UK_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${ARGN})
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: ")
endfunction()

# uk_add_script_test(<name> <script>): likewise, of scripts alone: the same in every build, so that one has it,
# and dev.sh leaves out its label where another compiler is what is tested.
function(uk_add_script_test name script)
  if(CMAKE_CROSSCOMPILING OR UK_SANITIZE)
    return()
  endif()
  uk_add_python_test(${name} ${script})
  set_tests_properties(${name} PROPERTIES LABELS python ENVIRONMENT "PYTHONPATH=${PROJECT_SOURCE_DIR}")
endfunction()

# uk_add_rejection_test(<name> <program> <arguments>...): a wrong command line of a benchmark program, which says
# so in one line, and exits with 2.
function(uk_add_rejection_test name program)
  add_test(NAME ${program}.rejects_${name} COMMAND sh -c
    "said=$(\"$0\" \"$@\" 2>&1); test $? -eq 2 && echo \"$said\" && test $(echo \"$said\" | wc -l) -eq 1"
    $<TARGET_FILE:${program}> ${ARGN})
  set_tests_properties(${program}.rejects_${name} PROPERTIES LABELS bench-smoke)
endfunction()
