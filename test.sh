#!/usr/bin/env bash
# Sets up, builds and tests Frazil, in the same way for a newcomer and before a change is taken in. The last lines say what passed and what was
# skipped, and where the minutes went.
#   ./test.sh                   release build, sanitizers by turns, then the release tests (labels fast, thorough, slow): on even days since 1970,
#                               counted in UTC, the build with the address sanitizer and its tests, on odd ones the thread sanitizer and fuzzing
#   ./test.sh --sanitizers      with both sanitizers and fuzzing, whatever the day
#   ./test.sh ROOM...           builds and runs the tests of rooms alone, in the release build: planner/search, exec/cache, traces, house, ...
#   ./test.sh --fast            release build and the tests labelled fast
#   ./test.sh --no-sanitizers   without the sanitizer builds and fuzzing
#   ./test.sh --gpu | --soak    with the tests of that label too
#   ./test.sh --tidy            only clang-format over all sources, clang-tidy over those outside tests (version 14 of both)
#   ./test.sh --coverage        only the coverage build, its tests and the lines they reach (gcovr)
# FRAZIL_DAY, a number of days since 1970, takes the turns of that day, and `all` those of all days, as ROOM... and --soak do.
# FRAZIL_TORCH as in setup.sh. CMAKE_BUILD_PARALLEL_LEVEL sets the number of jobs (default: one per core). FRAZIL_FUZZ_SEED and
# FRAZIL_FUZZ_SECONDS set where fuzzing starts and how long it takes of each reader (default: 1, and 100 s shared by all readers; with --soak 60 s of each).
set -Eeuo pipefail
cd "$(dirname "$0")"

folders=(profiles traces sim planner analysis exec)
jobs=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
speeds=(fast thorough slow)
rooms=()
extras=()
with_sanitizers=turn  # yes: all of them; no: none
fuzz_seed=${FRAZIL_FUZZ_SEED:-1}
fuzz_seconds=${FRAZIL_FUZZ_SECONDS:-}
mode=tests
clang=''       # of the sanitizers and of the fuzzers
symbolizer=''  # names functions in what they report

# begin STEP: names what is done now, for the reader and for the sentence that a failure ends with.
step='starting'
step_began=0
minutes=''
begin() {
  end_step
  step=$1
  step_began=$SECONDS
  printf '\n== %s (%d:%02d)\n' "$step" $((SECONDS / 60)) $((SECONDS % 60))
}

# end_step: puts the step into the table of minutes.
end_step() {
  local took=$((SECONDS - step_began))
  if [ "$step" != starting ]; then minutes+=$(printf '%4d:%02d  %s' $((took / 60)) $((took % 60)) "$step")$'\n'; fi
  step_began=$SECONDS
}

print_minutes() {
  end_step
  printf '\n%s%4d:%02d  in all; nothing failed\n' "$minutes" $((SECONDS / 60)) $((SECONDS % 60))
}
trap 'printf "\ntest.sh: failed at: %s. The lines above say why; mend that and run ./test.sh again.\n" "$step" >&2' ERR

fail() {
  printf 'test.sh: %s\n' "$*" >&2
  exit 1
}

# build PRESET [TARGETS...]: configures and builds, benchmarks under --soak alone. The sanitizer presets decide about libtorch themselves.
build() {
  local preset=$1 settings=("-DFRAZIL_TORCH=${FRAZIL_TORCH:-}")
  shift
  if ! wants_soak; then settings+=(-DFRAZIL_BENCH=OFF); fi
  if [ "$preset" = asan ]; then settings=("-DCMAKE_CXX_COMPILER=$clang"); fi
  cmake --preset "$preset" "${settings[@]}"
  cmake --build --preset "$preset" --parallel "$jobs" ${1:+--target "$@"}
}

# run_tests FOLDER [OPTIONS OF CTEST...]: the tests chosen by label. A label that was not asked for keeps a test out, whatever others it has.
run_tests() {
  local folder=$1 all=(fast thorough slow gpu soak) unwanted=() label failed=0
  for label in "${all[@]}"; do
    if [[ " ${labels[*]} " != *" $label "* ]]; then unwanted+=("$label"); fi
  done
  rm -rf "$folder/results"
  tests/watch_listeners.py ctest --test-dir "$@" --output-on-failure --no-tests=error --parallel "$jobs" --timeout 600 \
    --label-regex "^($(join '|' "${labels[@]}"))\$" --label-exclude "^($(join '|' "${unwanted[@]}" none))\$" </dev/null || failed=$?
  python3 tests/count_results.py "$folder/results"
  return "$failed"
}

wants_soak() { [[ " ${labels[*]} " == *' soak '* ]]; }

# join SEPARATOR WORDS...
join() {
  local IFS=$1
  shift
  printf '%s' "$*"
}

# Tests labelled unsanitized (tests/labels.cmake) are left out, but under --soak. Clang, which the fuzzers need anyway, takes half as long as
# g++ for the builds with sanitizers, and warns of other things.
run_address_sanitizer() {
  begin 'building with the address and undefined-behaviour sanitizers (build/asan)'
  build asan
  begin 'testing with the address and undefined-behaviour sanitizers'
  local labels=("${labels[@]}")
  if wants_soak; then labels+=(unsanitized); fi
  ASAN_OPTIONS=external_symbolizer_path=$symbolizer:detect_stack_use_after_return=1:check_initialization_order=1 \
    UBSAN_OPTIONS=external_symbolizer_path=$symbolizer:print_stacktrace=1 run_tests build/asan
}

# Only the rooms of the executor in which threads meet: libtorch is not instrumented, and the other folders have no threads.
# Tests labelled unsanitized are left out, but under --soak.
run_thread_sanitizer() {
  if [ "${FRAZIL_TORCH:-}" = none ]; then
    printf '\n== no thread sanitizer: FRAZIL_TORCH=none leaves out the executor, the only part with threads\n'
    return
  fi
  # Where the kernel spreads addresses widely, the sanitizer's fixed shadow memory does not fit unless that is switched off for its programs.
  local steady=() programs=() room
  if setarch "$(uname -m)" -R true 2>/dev/null; then steady=(setarch "$(uname -m)" -R); fi
  for room in devices links communication control cache state measuring reduction run data checkpoint train threads; do programs+=("exec_${room}_tests"); done
  begin 'building the tests of the executor with the thread sanitizer (build/tsan)'
  cmake --preset tsan "-DFRAZIL_TORCH=${FRAZIL_TORCH:-}" "-DCMAKE_CXX_COMPILER=$clang"
  "${steady[@]}" cmake --build --preset tsan --parallel "$jobs" --target "${programs[@]}"
  begin 'testing with the thread sanitizer'
  local -x TSAN_OPTIONS=external_symbolizer_path=$symbolizer:halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/tests/exec/thread_sanitizer.supp
  local failed=0 left_out='soak|gpu|unsanitized'
  if wants_soak; then left_out='soak|gpu'; fi
  rm -rf build/tsan/results
  "${steady[@]}" ctest --test-dir build/tsan --output-on-failure --no-tests=error --parallel "$jobs" --timeout 1200 \
    --tests-regex "^($(join '|' "${programs[@]}"))/" --label-exclude "^($left_out)\$" </dev/null || failed=$?
  python3 tests/count_results.py build/tsan/results
  return "$failed"
}

# fuzz NAME: build/fuzz/bin/fuzz_NAME from its seeds on. Equal seeds of the fuzzer begin alike, so its corpus is never kept.
fuzz() {
  local name=$1 place=build/fuzz/$1
  rm -rf "$place/corpus"
  mkdir -p "$place/corpus" "$place/found"
  if ! ASAN_OPTIONS=external_symbolizer_path=$symbolizer:quarantine_size_mb=64 UBSAN_OPTIONS=external_symbolizer_path=$symbolizer:print_stacktrace=1 \
    "build/fuzz/bin/fuzz_$name" "-seed=$fuzz_seed" "-max_total_time=$fuzz_seconds" -rss_limit_mb=512 -malloc_limit_mb=64 -timeout=5 "-dict=tests/fuzz/$name.dict" "-artifact_prefix=$place/found/" \
    -print_final_stats=1 "$place/corpus" "tests/fuzz/seeds/$name" >"$place/log" 2>&1 </dev/null; then
    grep -v '^#' "$place/log" | tail -n 40 >&2
    printf 'test.sh: fuzz_%s failed (-seed=%s); again with: build/fuzz/bin/fuzz_%s %s\n' \
      "$name" "$fuzz_seed" "$name" "$(sed -n 's/.*Test unit written to //p' "$place/log" | tail -n 1)" >&2
    return 1
  fi
  awk -v name="fuzz_$name" -v seed="$fuzz_seed" '
    $1 == "stat::number_of_executed_units:" { inputs = $2 }
    $1 == "stat::average_exec_per_sec:" { speed = $2 }
    $1 == "stat::peak_rss_mb:" { memory = $2 }
    END { printf "%s: %d inputs, %d per second, at most %d MiB resident, -seed=%s: nothing found\n", name, inputs, speed, memory, seed }
  ' "$place/log"
}

run_fuzzers() {
  begin 'building the fuzzers of the readers (build/fuzz)'
  cmake --preset fuzz "-DCMAKE_CXX_COMPILER=$clang"
  cmake --build --preset fuzz --parallel "$jobs"
  local running=0 failed=no name names=()
  for name in build/fuzz/bin/fuzz_*; do names+=("${name##*/fuzz_}"); done
  if wants_soak; then fuzz_seconds=${fuzz_seconds:-60}; fi
  fuzz_seconds=${fuzz_seconds:-$((100 / ${#names[@]}))}
  begin "fuzzing each of ${#names[@]} readers for $fuzz_seconds s (-seed=$fuzz_seed)"
  for name in "${names[@]}"; do
    if [ "$running" -lt "$jobs" ]; then
      running=$((running + 1))
    else
      wait -n || failed=yes
    fi
    fuzz "$name" &
  done
  while [ "$running" -gt 0 ]; do
    wait -n || failed=yes
    running=$((running - 1))
  done
  [ "$failed" = no ]
}

# Each build with a sanitizer takes as long as half the release build.
run_sanitizers() {
  local turn=''
  if [ "$with_sanitizers" = turn ]; then turn=$((FRAZIL_DAY % 2)); fi
  clang=$(./setup.sh --fuzzing-compiler)
  symbolizer=$(./setup.sh --symbolizer)
  if [ "$with_sanitizers" = yes ] || [ "$turn" = 0 ]; then
    run_address_sanitizer
  else
    printf '\n== no address sanitizer: its turn is tomorrow (./test.sh --sanitizers has it today)\n'
  fi
  if [ "$with_sanitizers" = yes ] || [ "$turn" = 1 ]; then
    run_thread_sanitizer
    run_fuzzers
  else
    printf '\n== no thread sanitizer and no fuzzing: their turn is tomorrow (./test.sh --sanitizers has them today)\n'
  fi
}

# Stock PyTorch is for the interop tests, which are slow ones.
needs_pytorch() { [ "$mode" = tests ] && [ "${FRAZIL_TORCH:-}" != none ] && [[ " ${labels[*]} " == *' slow '* ]]; }

set_up_pytorch() {
  if ! needs_pytorch; then return; fi
  begin 'setting up stock PyTorch for the interop tests (.deps/torch-python)'
  tests/interop/setup_torch.sh
}

run_release_tests() {
  begin 'building the release preset (build)'
  build release
  if [ "$with_sanitizers" != no ]; then run_sanitizers; fi
  begin "testing the release build (labels: ${labels[*]}; of the suites by turns those of FRAZIL_DAY=$FRAZIL_DAY)"
  run_tests build
}

# need PROGRAM PACKAGE
need() {
  command -v "$1" >/dev/null || fail "found no $1, which only this option needs; install it with: apt-get install $2"
}

# program_of ROOM: planner/search -> planner_search_tests, exec/properties/threads -> exec_threads_tests, traces/kineto -> traces_tests.
program_of() {
  case $1 in
    planner/* | exec/*) printf '%s_%s_tests' "${1%%/*}" "${1##*/}" ;;
    *) printf '%s_tests' "${1%%/*}" ;;
  esac
}

# list_rooms: the rooms that have a test program, one a line; exec/threads is tests/exec/properties/threads.
list_rooms() {
  printf '%s\n' house profiles traces sim analysis
  sed -n 's|^add_planner_tests(\([a-z_]*\).*|planner/\1|p' tests/planner/CMakeLists.txt
  sed -n 's|^add_exec_tests(\([a-z_]*\).*|exec/\1|p' tests/exec/CMakeLists.txt | grep -vx exec/gpu
}

# check_rooms: refuses a name that is no room, before anything is set up. A folder deeper in a room stands for the room (traces/kineto).
check_rooms() {
  local room known
  known=$(list_rooms)
  for room in "${rooms[@]}"; do
    if grep -qxF -- "$room" <<<"$known"; then continue; fi
    if [[ $room == */* && -d tests/$room ]]; then
      case $room in
        planner/* | exec/*) if grep -qxF -- "${room%%/*}/${room##*/}" <<<"$known"; then continue; fi ;;
        *) if grep -qxF -- "${room%%/*}" <<<"$known"; then continue; fi ;;
      esac
    fi
    # shellcheck disable=SC2016  # backquotes are quotation marks here
    printf 'test.sh: found room `%s`, expected one of %s\n' "$room" "$(paste -sd ' ' <<<"$known")" >&2
    exit 2
  done
}

# The inner loop: one room after the other, in the release build. Of the house's tests, HouseStart needs all programs and is left to the
# whole run; FrontDoor needs the front door alone.
run_rooms() {
  local room program
  begin 'configuring the release preset (build)'
  cmake --preset release "-DFRAZIL_TORCH=${FRAZIL_TORCH:-}" >/dev/null
  for room in "${rooms[@]}"; do
    program=$(program_of "$room")
    if [ "$room" = house ]; then
      begin 'building the front door'
      cmake --build --preset release --parallel "$jobs" --target frazil
      begin 'testing house'
      ctest --test-dir build --output-on-failure --no-tests=error --tests-regex '^(House|FrontDoor)' --exclude-regex '^HouseStart' </dev/null
      continue
    fi
    begin "building $program"
    cmake --build --preset release --parallel "$jobs" --target "$program"
    begin "testing $room"
    ctest --test-dir build --output-on-failure --no-tests=error --parallel "$jobs" --timeout 600 --tests-regex "^$program/" \
      --label-exclude '^(soak|gpu)$' </dev/null
  done
}

check_style() {
  need clang-format-14 clang-format-14
  need clang-tidy-14 clang-tidy-14
  begin 'configuring for clang-tidy (build/tidy)'
  cmake --preset tidy "-DFRAZIL_TORCH=${FRAZIL_TORCH:-}" >/dev/null
  begin 'checking the format'
  find "${folders[@]}" tests -name '*.h' -print0 -o -name '*.cpp' -print0 | xargs -0 clang-format-14 --dry-run -Werror
  begin 'checking with clang-tidy'
  local left_out=()
  if ! grep -q '/exec/devices/cuda/' build/tidy/compile_commands.json; then left_out=(-not -path 'exec/devices/cuda/*'); fi
  find "${folders[@]}" -name '*.cpp' "${left_out[@]}" -print0 | LC_ALL=C sort -z | xargs -0 -n 1 -P "$jobs" clang-tidy-14 -p build/tidy --quiet
  printf '\nformat and clang-tidy: nothing found\n'
}

measure_coverage() {
  need gcovr gcovr
  begin 'building for line coverage (build/coverage)'
  build coverage
  begin 'testing for line coverage'
  find build/coverage -name '*.gcda' -delete
  run_tests build/coverage
  begin 'lines reached by the tests'
  gcovr --root . --gcov-executable "${CXX/g++/gcov}" --filter "($(join '|' "${folders[@]}"))/" --exclude '.*_main\.cpp$' --fail-under-line 85 -j "$jobs" build/coverage
}

while [ $# -gt 0 ]; do
  case $1 in
    --fast)
      speeds=(fast)
      with_sanitizers=no
      ;;
    --no-sanitizers) with_sanitizers=no ;;
    --sanitizers) with_sanitizers=yes ;;
    --gpu | --soak) extras+=("${1#--}") ;;
    --tidy) mode=style ;;
    --coverage) mode=coverage ;;
    -h | --help)
      sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
      exit
      ;;
    [a-z]*)
      rooms+=("${1%/}")
      mode=rooms
      with_sanitizers=no
      ;;
    *) fail "found \`$1\`, expected a room, --fast, --sanitizers, --no-sanitizers, --gpu, --soak, --tidy, --coverage or --help" ;;
  esac
  shift
done

check_rooms
labels=("${speeds[@]}" "${extras[@]}")
# Fixed before anything is built, for the run may last beyond midnight.
export FRAZIL_DAY=${FRAZIL_DAY:-$(($(date +%s) / 86400))}
if [ "$mode" = rooms ] || wants_soak; then FRAZIL_DAY=all; fi
if [ "$FRAZIL_DAY" = all ] && [ "$with_sanitizers" = turn ]; then with_sanitizers=yes; fi

begin 'setting up'
besides=()
if needs_pytorch; then besides+=(--keep-wheel); fi
if [ "$mode" = tests ] && [ "$with_sanitizers" != no ]; then besides+=(--fuzzing); fi
./setup.sh "${besides[@]}"
CXX=$(./setup.sh --compiler)
export CXX
case $mode in
  tests)
    set_up_pytorch
    run_release_tests
    ;;
  rooms) run_rooms ;;
  style) check_style ;;
  coverage) measure_coverage ;;
esac
print_minutes
