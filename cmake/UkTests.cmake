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
