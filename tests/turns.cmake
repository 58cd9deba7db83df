# Tests by turns of days. The environment variable FRAZIL_DAY tells the day, as a number of days since 1970, or `all` for all turns at once;
# without it the clock does, in UTC. test.sh sets it, so that a run over midnight has one day.

# find_day(<day>): the number of the day, in a variable of the caller.
function(find_day day)
  if("$ENV{FRAZIL_DAY}" MATCHES "^[0-9]+$")
    set(${day} $ENV{FRAZIL_DAY} PARENT_SCOPE)
    return()
  endif()
  string(TIMESTAMP seconds "%s" UTC)
  math(EXPR today "${seconds} / 86400")
  set(${day} ${today} PARENT_SCOPE)
endfunction()

# todays_turns(<todays> <others> <names>...): the third of the names whose day it is, and the rest, in two variables of the caller.
function(todays_turns todays others)
  find_day(day)
  math(EXPR turn "${day} % 3")
  set(place 0)
  set(now)
  set(later)
  foreach(name IN LISTS ARGN)
    if(place EQUAL turn OR "$ENV{FRAZIL_DAY}" STREQUAL "all")
      list(APPEND now ${name})
    else()
      list(APPEND later ${name})
    endif()
    math(EXPR place "(${place} + 1) % 3")
  endforeach()
  set(${todays} ${now} PARENT_SCOPE)
  set(${others} ${later} PARENT_SCOPE)
endfunction()
