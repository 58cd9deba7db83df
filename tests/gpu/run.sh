#!/usr/bin/env bash
# Builds Frazil on a machine with a GPU, runs the tests labelled gpu and measures; at most 9 minutes. Needs no network.
#   tests/gpu/run.sh [FOLDER]        results go into FOLDER (default ./gpu-results): machine.txt, tests.txt, *.jsonl, summary.txt
#   tests/gpu/run.sh --collect DIR   where Frazil is built: the headers and libraries that its build has read of packages, into DIR. Such a
#                                    folder, named gpu-needs in this tree or by FRAZIL_NEEDS, stands in for packages the GPU machine lacks
# FRAZIL_TORCH names the folder of a torch 2.11 for CUDA 13; else .deps/torch or the torch of python3 is taken.
# Ends with 0 when all tests passed and every schedule had the bits of one stream, 77 without a GPU, 2 when something to build with lacks.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

say() { printf 'tests/gpu/run.sh: %s\n' "$*"; }
# stop CODE SENTENCE
stop() {
  say "$2" >&2
  exit "$1"
}

# collect FOLDER: what ninja has seen the compiler read below /usr, with the packages' own CMake files and the libraries they name.
collect() {
  local file libraries=/usr/lib/x86_64-linux-gnu
  [ -f build/.ninja_deps ] || stop 2 "found no build, expected one by cmake --preset release to collect from"
  mkdir -p "$1/lib" || exit 1
  ninja -C build -t deps | grep -oE '/usr/include/(boost|fmt|gloo|nlohmann|gtest|gmock|xxhash|(x86_64-linux-gnu/)?(openssl/|zlib|zconf))[^ ]*' | sort -u | while read -r file; do
    local place=${file#/usr/include/}
    install -D -m 644 "$file" "$1/include/${place#x86_64-linux-gnu/}"
  done
  # What CMake's own modules look at to know a version.
  for file in boost/version.hpp gloo/config.h gtest/gtest.h openssl/ssl.h zlib.h; do install -D -m 644 "/usr/include/$file" "$1/include/$file"; done
  cp "$libraries"/lib{gtest,gtest_main,boost_program_options,crypto,z}.a "$1/lib/" || stop 2 "a static library to collect is missing in $libraries"
  # fmt comes as a shared one, and by its name there must be no links: what carries the folder may drop them. Its CMake files count folders
  # upwards to find it.
  mkdir -p "$1/lib/x86_64-linux-gnu/cmake" "$1/share/cmake"
  for file in "$libraries"/libfmt.so.*; do cp -L "$file" "$1/lib/x86_64-linux-gnu/"; done
  cp -r "$libraries/cmake/fmt" "$1/lib/x86_64-linux-gnu/cmake/"
  cp -r /usr/share/cmake/nlohmann_json "$1/share/cmake/" || stop 2 "found no CMake files of nlohmann-json below /usr/share"
  say "collected $(du -sh "$1" | cut -f1) into $1"
}

if [ "${1:-}" = --collect ]; then
  collect "${2:?usage: tests/gpu/run.sh --collect DIR}"
  exit
fi
case ${1:-} in -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit ;; esac

results=${1:-gpu-results}
needs=${FRAZIL_NEEDS:-$PWD/gpu-needs}
build=build/gpu
# The device files are there on bare metal, nvidia-smi where the driver's tools are.
if ! { command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU; } && ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  stop 77 "found no GPU on this machine, expected one with a driver for CUDA 13: nothing was built or measured"
fi

find_torch() {
  local folder
  if [ -n "${FRAZIL_TORCH:-}" ]; then
    printf '%s\n' "$FRAZIL_TORCH"
    return
  fi
  if [ -f .deps/torch/lib/libtorch_cuda.so ]; then
    printf '%s\n' "$PWD/.deps/torch"
    return
  fi
  for python in python3 python; do
    folder=$("$python" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])' 2>/dev/null) && printf '%s\n' "$folder" && return
  done
  return 1
}

torch=$(find_torch) || stop 2 "found no torch 2.11 with CUDA, expected one in FRAZIL_TORCH, .deps/torch or python3"
[ -f "$torch/lib/libtorch_cuda.so" ] || stop 2 "found no libtorch_cuda.so in $torch/lib, expected a torch 2.11 for CUDA 13"

# Names what lacks, all of it at once.
missing=()
for program in cmake ninja nvcc; do
  command -v "$program" >/dev/null || { [ "$program" = nvcc ] && [ -x /usr/local/cuda/bin/nvcc ]; } || missing+=("$program")
done
compiler=
for candidate in "${CXX:-g++}" g++-12 g++-13 g++-14; do
  if command -v "$candidate" >/dev/null && [ "$("$candidate" -dumpversion | cut -d. -f1)" -ge 12 ]; then
    compiler=$candidate
    break
  fi
done
[ -n "$compiler" ] || missing+=('g++ 12 or newer')
while read -r package header; do
  if ! [ -e "/usr/include/$header" ] && ! [ -e "$needs/include/$header" ]; then missing+=("$package"); fi
done <<'END'
libboost-dev boost/graph/adjacency_list.hpp
libboost-program-options-dev boost/program_options.hpp
nlohmann-json3-dev nlohmann/json.hpp
libfmt-dev fmt/core.h
libgloo-dev gloo/config.h
libgtest-dev gtest/gtest.h
libssl-dev openssl/hmac.h
libxxhash-dev xxhash.h
zlib1g-dev zlib.h
END
if [ "${#missing[@]}" -gt 0 ]; then
  printf -v list '%s, ' "${missing[@]}"
  stop 2 "these are missing: ${list%, }; install them, or run tests/gpu/run.sh --collect gpu-needs where Frazil is built and bring that folder along"
fi

mkdir -p "$results" || stop 2 "found that $results cannot be made, expected the name of a folder"
results=$(cd "$results" && pwd)
last=$((SECONDS + 540))
failed=()

# part NAME LIMIT FILE COMMAND...: its output into FILE; within LIMIT seconds, and within the nine minutes.
part() {
  local name=$1 limit=$2 file=$3 left=$((last - SECONDS)) code=0
  shift 3
  if [ "$limit" -gt "$left" ]; then limit=$left; fi
  if [ "$limit" -lt 5 ]; then
    say "$name: left out, the nine minutes are over"
    failed+=("$name")
    return 1
  fi
  say "$name"
  timeout "$limit" "$@" >"$results/$file" 2>"$results/$file.err" </dev/null || code=$?
  [ -s "$results/$file.err" ] || rm -f "$results/$file.err"
  if [ "$code" != 0 ]; then
    failed+=("$name")
    say "$name ended with $code; its last lines:"
    tail -n 15 "$results/$file" "$results/$file.err" 2>/dev/null
    return 1
  fi
}

{
  date -u +%Y-%m-%d
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv 2>&1
  nproc
  grep -m1 'model name' /proc/cpuinfo
  "$compiler" --version | head -1
  printf 'torch in %s\n' "$torch"
  cat "$torch/version.py" 2>/dev/null
} >"$results/machine.txt"

# A machine may have some of Boost with CMake files of its own, which would be asked before the folder of what was brought along.
configure() {
  local own=OFF
  local crypto=()
  if [ -d "$needs/include/boost" ]; then own=ON; fi
  if [ -f "$needs/lib/libcrypto.a" ]; then crypto=("-DOPENSSL_ROOT_DIR=$needs" "-DOPENSSL_CRYPTO_LIBRARY=$needs/lib/libcrypto.a" "-DOPENSSL_INCLUDE_DIR=$needs/include"); fi
  PATH=$PATH:/usr/local/cuda/bin cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_COMPILER=$compiler" \
    "-DFRAZIL_TORCH=$torch" -DFRAZIL_BENCH=OFF "-DCMAKE_PREFIX_PATH=$needs" "-DBOOST_ROOT=$needs" "-DCMAKE_LIBRARY_PATH=$needs/lib" "-DBoost_NO_BOOST_CMAKE=$own" "${crypto[@]}"
}
export needs build torch compiler
export -f configure

part 'configuring' 60 configure.txt bash -c configure || stop 2 "the build could not be configured; $results/configure.txt says why"
grep -q 'exec/devices/cuda: left out' "$results/configure.txt" && stop 2 "the plug-in for GPUs is left out; $results/configure.txt says why"
targets=(frazil_cuda exec_gpu_tests device_steps exec_devices_tests)
if grep -q 'exec/communication/nccl: left out' "$results/configure.txt"; then
  failed+=('NCCL, which was not found')
else
  targets+=(nccl_two_processes)
fi
part 'building' 330 build.txt cmake --build "$build" --parallel 16 --target "${targets[@]}" ||
  stop 1 "the build failed; $results/build.txt says why"
steps=$build/bin/device_steps
some=gpipe,1f1b,zb-h1,interleaved,zb-v,replicas
part 'testing' 150 tests.txt "$build/bin/exec_gpu_tests"
if grep -q 'SKIPPED' "$results/tests.txt"; then failed+=('testing, of which parts were skipped'); fi
part 'testing devices on a plug-in of the tests' 60 stream_tests.txt "$build/bin/exec_devices_tests"
if [ -x "$build/bin/nccl_two_processes" ]; then part 'two processes over NCCL' 95 nccl.jsonl "$build/bin/nccl_two_processes"; fi
part 'streams that share the GPU, and a host that waits for them' 60 shared.jsonl "$steps" --device cuda --devices 2,4 --steps 6 --share --waits --schedules "$some"
for model in vit-b16 bert-large; do
  for precision in fp32 bf16; do
    part "$model in $precision" 40 "$model-$precision.jsonl" "$steps" --device cuda --devices 2 --steps 4 --waits --model "$model" --precision "$precision" --schedules 1f1b
  done
done
part 'streams with parts of the GPU' 60 parts.jsonl "$steps" --device cuda --devices 2,4 --steps 4
part 'the wide model, and a host that waits for it' 60 wide.jsonl "$steps" --device cuda --devices 2,4 --steps 6 --model wide --waits --schedules "$some"
part 'eight cores' 60 cores.jsonl "$steps" --device cpu --devices 8 --micro-batches 16 --steps 4 --schedules "$some"
{
  cat "$results/machine.txt"
  tail -n 12 "$results/tests.txt"
  if [ -f "$results/nccl.jsonl" ]; then printf '\nNCCL between two processes:\n' && cat "$results/nccl.jsonl"; fi
  for file in parts shared wide cores vit-b16-fp32 vit-b16-bf16 bert-large-fp32 bert-large-bf16; do
    printf '\n%s: lines with the bits of one device: %s, without: %s\n' "$file" \
      "$(grep -c '"same_bits":true' "$results/$file.jsonl")" "$(grep -c '"same_bits":false' "$results/$file.jsonl")"
    sed -nE 's/.*"schedule":"([^"]*)","devices":([0-9]*),.*"median_ms":([0-9.]*),.*"ratio":([0-9.]*),.*"loss":([0-9.e-]*),.*/\1 on \2: \3 ms, \4 of one device, loss \5/p' "$results/$file.jsonl"
    sed -nE 's/.*"schedule":"([^"]*)","devices":([0-9]*),.*"spans_ms":([0-9.]*),"host_waits":([0-9.]*),.*"waiting_ms":([0-9.]*),"over_waiting":([0-9.]*),"same_bits_waiting":([a-z]*).*/\1 on \2: spans over \3 ms, \4 waits; \6 of the \5 ms of a host that waits, same bits: \7/p' "$results/$file.jsonl"
  done
} >"$results/summary.txt" 2>/dev/null

if [ "${#failed[@]}" -gt 0 ]; then
  printf -v list '%s, ' "${failed[@]}"
  stop 1 "failed: ${list%, }; the results are in $results"
fi
say "all tests passed and every schedule had the bits of one device; the results are in $results ($SECONDS s)"
