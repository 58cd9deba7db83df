#!/usr/bin/env bash
# Brings a Debian 12 or Ubuntu 22.04/24.04 machine to the point where Frazil builds: packages from apt, and the CPU part of libtorch 2.11
# from PyPI into .deps/ (544 MB to fetch, 500 MB kept); where it finds CUDA's nvcc the part for GPUs too (232 MB more to fetch, 740 MB kept).
# Says what it will do first, changes nothing else, and is a quick no-op when all is there.
#   ./setup.sh               install what is missing
#   ./setup.sh --keep-wheel  the same; the torch wheel, if it is fetched now, stays in .deps/wheels for tests/interop/setup_torch.sh
#   ./setup.sh --fuzzing     the same; and a clang with libFuzzer and its llvm-symbolizer, which only test.sh needs
#   ./setup.sh --compiler    print the C++ compiler to build with (g++ 12 or newer, or what CXX names); --fuzzing-compiler: that of the fuzzers
#                            and sanitizers; --symbolizer: the program that names functions in what sanitizers report
# FRAZIL_TORCH=FOLDER uses the libtorch 2.11 in FOLDER (include/ and lib/), such as a full one with CUDA; FRAZIL_TORCH=none does without:
# planning, simulating and reporting need none.
set -euo pipefail
cd "$(dirname "$0")"

# A package, and the command or file (a pattern) that shows it is there, whoever brought it.
needs='
cmake                         cmake
ninja-build                   ninja
libboost-dev                  /usr/include/boost/graph/adjacency_list.hpp
libboost-program-options-dev  /usr/lib/*/libboost_program_options.so
nlohmann-json3-dev            /usr/include/nlohmann/json.hpp
libfmt-dev                    /usr/include/fmt/core.h
libgloo-dev                   /usr/include/gloo/config.h
libgtest-dev                  /usr/include/gtest/gtest.h
libgmock-dev                  /usr/include/gmock/gmock.h
libbenchmark-dev              /usr/include/benchmark/benchmark.h
libssl-dev                    /usr/include/openssl/hmac.h
libxxhash-dev                 /usr/include/xxhash.h
zlib1g-dev                    /usr/include/zlib.h
python3                       python3
ca-certificates               /etc/ssl/certs/ca-certificates.crt'

# Pinned by content. Only files of these wheels are used; nothing in them is run by Python.
wheels='
torch==2.11.0               --hash=sha256:7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a
nvidia-cuda-runtime==13.0.96 --hash=sha256:7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
nvidia-cuda-cupti==13.0.85  --hash=sha256:4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8'

# What libtorch's part for GPUs needs that a CUDA toolkit does not hold.
gpu_wheels='
nvidia-cusparselt-cu13==0.8.0 --hash=sha256:25e30a8a7323935d4ad0340b95a0b69926eee755767e8e0b1cf8dd85b197d3fd
nvidia-nvshmem-cu13==3.4.5  --hash=sha256:290f0a2ee94c9f3687a02502f3b9299a9f9fe826e6d0287ee18482e78d495b80
nvidia-cufile==1.15.1.6     --hash=sha256:08a3ecefae5a01c7f5117351c64f17c7c62efa5fffdbe24fc7d298da19cd0b44'

say() { printf 'setup.sh: %s\n' "$*"; }
fail() {
  printf 'setup.sh: %s\n' "$*" >&2
  exit 1
}

# find_compiler: prints CXX if set, else the first g++ of version 12 or newer.
find_compiler() {
  if [ -n "${CXX:-}" ]; then
    command -v "${CXX%% *}" >/dev/null || fail "found CXX=$CXX, which is no program here, expected a C++20 compiler; unset CXX to look for g++"
    printf '%s\n' "$CXX"
    return
  fi
  local candidate version
  for candidate in g++ g++-12 g++-13 g++-14 g++-15; do
    command -v "$candidate" >/dev/null || continue
    version=$("$candidate" -dumpversion)
    if [ "${version%%.*}" -ge 12 ]; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  return 1
}

# find_fuzzing_compiler: prints the first clang that has a libFuzzer and can read the C++ library of this machine.
find_fuzzing_compiler() {
  local candidate program
  program=$(mktemp)
  for candidate in clang++-14 clang++-15 clang++-16 clang++-17 clang++-18 clang++-19 clang++; do
    command -v "$candidate" >/dev/null || continue
    if "$candidate" -std=c++20 -fsanitize=fuzzer,address,undefined -x c++ - -o "$program" 2>/dev/null <<'END'; then
#include <chrono>
extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, decltype(sizeof 0)) { return 0; }
END
      rm -f "$program"
      printf '%s\n' "$candidate"
      return
    fi
  done
  rm -f "$program"
  return 1
}

# fuzzing_packages: the names, with a linker that takes a seventh of the usual one's time for what is instrumented. Clang 14 cannot read the
# C++ library of Ubuntu 24.04; that of Ubuntu 22.04 brings its libFuzzer along.
fuzzing_packages() {
  # shellcheck source=/dev/null
  case $(. /etc/os-release 2>/dev/null && echo "${ID:-}${VERSION_ID:-}") in
    ubuntu22.04) echo clang-14 llvm-14 lld-14 ;;
    ubuntu24.04) echo clang-18 libclang-rt-18-dev llvm-18 lld-18 ;;
    *) echo clang-14 libclang-rt-14-dev llvm-14 lld-14 ;;
  esac
}

# find_symbolizer: prints the llvm-symbolizer beside that clang, else the one that is found as a command. Without one the thread sanitizer
# cannot tell which reports are suppressed.
find_symbolizer() {
  local compiler beside
  compiler=$(find_fuzzing_compiler) || return 1
  beside=$(dirname "$(readlink -f "$(command -v "$compiler")")")/llvm-symbolizer
  if [ -x "$beside" ]; then echo "$beside"; else command -v llvm-symbolizer; fi
}

# is_there PROBE: a path pattern names an existing file, or a command is found.
is_there() {
  case $1 in
    /*) compgen -G "$1" >/dev/null ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

# is_torch_2_11 FOLDER: what the build needs of libtorch is there, in the version whose headers the code is written for.
is_torch_2_11() {
  local header=$1/include/torch/headeronly/version.h
  [ -f "$1/lib/libtorch_cpu.so" ] && [ -f "$1/lib/libc10.so" ] && [ -f "$header" ] &&
    grep -q '^#define TORCH_VERSION_MAJOR 2$' "$header" && grep -q '^#define TORCH_VERSION_MINOR 11$' "$header"
}

# must_fetch_torch: false when FRAZIL_TORCH or .deps holds one; a wrong FRAZIL_TORCH ends the set-up.
must_fetch_torch() {
  case ${FRAZIL_TORCH:-} in
    none) return 1 ;;
    ?*)
      is_torch_2_11 "$FRAZIL_TORCH" ||
        fail "found no libtorch 2.11 in FRAZIL_TORCH=$FRAZIL_TORCH, expected a folder with include/ and lib/; name another, or unset FRAZIL_TORCH to fetch one"
      return 1
      ;;
  esac
  ! { is_torch_2_11 .deps/torch && [ -f .deps/nvidia/cu13/lib/libcudart.so.13 ] && [ -f .deps/nvidia/cu13/lib/libcupti.so.13 ] &&
    { ! has_toolkit || [ -f .deps/torch/lib/libtorch_cuda.so ]; }; }
}

# has_toolkit: where CMake would look for one to build the plug-in for GPUs with.
has_toolkit() { command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; }

# missing_packages: the names, one per line.
missing_packages() {
  local package probe
  if ! find_compiler >/dev/null; then
    # shellcheck source=/dev/null
    # Ubuntu 22.04's own g++ is version 11; version 12 stands beside it.
    if [ "$(. /etc/os-release 2>/dev/null && echo "${ID:-}${VERSION_ID:-}")" = ubuntu22.04 ]; then echo g++-12; else echo g++; fi
  fi
  while read -r package probe; do
    if [ -n "$package" ] && ! is_there "$probe"; then echo "$package"; fi
  done <<<"$needs"
  if [ "$fuzzes" = yes ] && ! find_symbolizer >/dev/null; then fuzzing_packages | tr ' ' '\n'; fi
  local fetches=no
  if must_fetch_torch || { [ "$keeps_wheel" = yes ] && [ ! -x .deps/torch-python/python ]; }; then fetches=yes; fi
  if [ "$fetches" = yes ] && ! python3 -m pip --version >/dev/null 2>&1; then echo python3-pip; fi
}

# install_packages NAMES...: through apt, as root or by sudo; without rights the exact line to run is the answer.
install_packages() {
  local as_root=() line="apt-get install -y --no-install-recommends $*"
  command -v apt-get >/dev/null || fail "found no apt-get, expected Debian 12 or Ubuntu 22.04/24.04; install what these packages hold by hand: $*"
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null || ! { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
      printf 'setup.sh: these packages are missing: %s\n' "$*" >&2
      fail "no right to install them here; have an administrator run: apt-get update && $line"
    fi
    as_root=(sudo)
  fi
  say "installing with apt: $*"
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
  "${as_root[@]}" "${apt[@]}" update || say "the package lists could not be renewed; trying with those that are here"
  "${as_root[@]}" "${apt[@]}" install -y --no-install-recommends "$@" </dev/null ||
    fail "apt could not install the packages; look at its message above, check the network and the package sources, then run ./setup.sh again (the line was: $line)"
}

# fetch_wheels FOLDER: pip picks the files for one fixed Python, so that any python3 of the machine will do.
fetch_wheels() {
  local try folder=$1
  printf '%s\n' "$wheels" >"$folder/requirements.txt"
  if has_toolkit; then printf '%s\n' "$gpu_wheels" >>"$folder/requirements.txt"; fi
  for try in 1 2 3; do
    if TMPDIR=$PWD/$folder PIP_DISABLE_PIP_VERSION_CHECK=1 python3 -m pip download --quiet --no-cache-dir --no-deps --only-binary=:all: \
      --implementation cp --python-version 3.11 --abi cp311 --abi none --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64 \
      --platform manylinux2014_x86_64 --require-hashes --requirement "$folder/requirements.txt" --dest "$folder/wheels"; then
      return
    fi
    [ "$try" = 3 ] || { say "the download failed, trying again in $((try * 5)) s"; sleep $((try * 5)); }
  done
  fail "libtorch could not be fetched from PyPI in 3 tries; check the network (and pip's proxy and index settings) and run ./setup.sh again, or set FRAZIL_TORCH to the folder of a libtorch 2.11, or to none to build without"
}

# unpack_wheels FOLDER: only what a build links and includes; of the part for GPUs what the plug-in loads (not the linear algebra, 54 MB).
unpack_wheels() {
  local for_gpus=no
  if has_toolkit; then for_gpus=yes; fi
  python3 - "$for_gpus" "$1" "$1"/wheels/*.whl <<'END' || fail "the fetched wheels could not be unpacked into .deps; about 2.5 GB of free disk space is needed there; then run ./setup.sh again"
import sys, zipfile
for_gpus, target, *wheels = sys.argv[1:]
folders = ("torch/include/", "torch/share/")
files = {"torch/version.py", "torch/lib/libtorch_cpu.so", "torch/lib/libc10.so", "torch/lib/libgomp.so.1",
         "nvidia/cu13/lib/libcudart.so.13", "nvidia/cu13/lib/libcupti.so.13"}
if for_gpus == "yes":
    files |= {"torch/lib/libtorch_cuda.so", "torch/lib/libc10_cuda.so", "torch/lib/libtorch_nvshmem.so", "nvidia/cu13/lib/libcufile.so.0",
              "nvidia/cusparselt/lib/libcusparseLt.so.0", "nvidia/nvshmem/lib/libnvshmem_host.so.3"}
for wheel in wheels:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            licence = ".dist-info/" in name and ("LICENSE" in name.upper() or "NOTICE" in name.upper())
            if name in files or name.startswith(folders) or licence:
                archive.extract(name, target)
END
}

# replace NAME FROM: .deps/NAME becomes FROM/NAME by renaming.
replace() {
  if [ -e ".deps/$1" ]; then mv ".deps/$1" "$2/old-$1"; fi
  mv "$2/$1" ".deps/$1"
}

fetch_torch() {
  local machine
  machine=$(uname -m)
  [ "$machine" = x86_64 ] || fail "found a machine of type $machine, expected x86_64; set FRAZIL_TORCH to the folder of a libtorch 2.11, or to none"
  say "fetching libtorch 2.11 (544 MB) from PyPI into .deps/: torch 2.11.0, nvidia-cuda-runtime 13.0.96, nvidia-cuda-cupti 13.0.85"
  if has_toolkit; then say "and for GPUs (232 MB), for there is a CUDA toolkit: nvidia-cusparselt-cu13 0.8.0, nvidia-nvshmem-cu13 3.4.5, nvidia-cufile 1.15.1.6"; fi
  mkdir -p .deps
  fetching=$(mktemp -d .deps/.new.XXXXXX)
  fetch_wheels "$fetching"
  unpack_wheels "$fetching"
  if [ "$keeps_wheel" = yes ]; then
    mkdir -p .deps/wheels
    mv "$fetching"/wheels/torch-*.whl .deps/wheels/
  fi
  rm -rf "$fetching/wheels"
  local unresolved
  unresolved=$(ldd "$fetching/torch/lib/libtorch_cpu.so" | grep 'not found' || true)
  [ -z "$unresolved" ] || fail "the fetched libtorch does not load here ($unresolved); set FRAZIL_TORCH to a libtorch 2.11 that does"
  # torch last: its presence is what says that all is there.
  replace nvidia "$fetching"
  replace torch "$fetching"
  local licences
  for licences in "$fetching"/*.dist-info; do
    if [ -d "$licences" ]; then replace "$(basename "$licences")" "$fetching"; fi
  done
}

fetching=
keeps_wheel=no
fuzzes=no
trap 'if [ -n "$fetching" ]; then rm -rf "$fetching"; fi' EXIT

while [ $# -gt 0 ]; do
  case $1 in
    --keep-wheel) keeps_wheel=yes ;;
    --fuzzing) fuzzes=yes ;;
    --compiler)
      find_compiler || fail "found no g++ 12 or newer; run ./setup.sh to install one"
      exit
      ;;
    --fuzzing-compiler)
      find_fuzzing_compiler || fail "found no clang 14 or newer with libFuzzer; run ./setup.sh --fuzzing to install one"
      exit
      ;;
    --symbolizer)
      find_symbolizer || fail "found no llvm-symbolizer; run ./setup.sh --fuzzing to install one"
      exit
      ;;
    -h | --help)
      sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
      exit
      ;;
    *) fail "found \`$1\`, expected nothing, --keep-wheel, --fuzzing, --compiler, --fuzzing-compiler, --symbolizer or --help" ;;
  esac
  shift
done

if [ -n "${CXX:-}" ]; then find_compiler >/dev/null; fi
must_fetch_torch || true
mapfile -t missing < <(missing_packages)
if [ "${#missing[@]}" -gt 0 ]; then install_packages "${missing[@]}"; fi
if must_fetch_torch; then fetch_torch; fi
say "ready"
