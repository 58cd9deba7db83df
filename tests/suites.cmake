# add_suites(<program> [LABEL <label>] [PROPERTIES <name> <value>...])
# Tells ctest of a test program: `<program>/fast` runs all suites that labels.cmake does not list, in one process, for starting a program
# that loads libtorch takes longer than most tests; `<program>/<Suite>` runs a suite that it lists. The usual label is `label`, else fast.
function(add_suites program)
  cmake_parse_arguments(PARSE_ARGV 1 given "" "LABEL" "PROPERTIES")
  if(NOT given_LABEL)
    set(given_LABEL fast)
  endif()
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${program}_suites.cmake)
  file(GENERATE OUTPUT ${script} CONTENT "set(program ${program})
set(file \"$<TARGET_FILE:${program}>\")
set(results \"${CMAKE_BINARY_DIR}/results\")
set(usual_label ${given_LABEL})
set(properties ${given_PROPERTIES})
set(sanitizer \"${FRAZIL_SANITIZE}\")
cmake_policy(VERSION 3.20)
include(\"${CMAKE_SOURCE_DIR}/tests/labels.cmake\")
include(\"${CMAKE_SOURCE_DIR}/tests/list_suites.cmake\")
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
endfunction()

include(${CMAKE_CURRENT_LIST_DIR}/turns.cmake)

# put_by_turns(<tests>...): of these entries of ctest, which stand already, a third keeps its label on the day of configuring; the others are soak.
function(put_by_turns)
  todays_turns(todays others ${ARGN})
  set_tests_properties(${others} PROPERTIES LABELS soak)
endfunction()
