#!/usr/bin/env bash
# Makes .deps/torch-python: stock PyTorch 2.11 for the CPU, as Python packages, and `python`, which starts python3 with them. Takes the torch wheel
# that ./setup.sh --keep-wheel left in .deps/wheels, else fetches it from PyPI (531 MB, and 20 MB besides); 1.1 GB kept, 450 MB of it shared with the build's libtorch. A quick no-op when all is there.
# Of CUDA, PyTorch needs little more than names until it is used: libraries that the machine lacks are stood in for by empty ones.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Pinned by content; torch for Python 3.10 to 3.13.
wheels='
torch==2.11.0
  --hash=sha256:1b32ceda909818a03b112006709b02be1877240c31750a8d9c6b7bf5f2d8a6e5
  --hash=sha256:7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a
  --hash=sha256:0f68f4ac6d95d12e896c3b7a912b5871619542ec54d3649cf48cc1edd4dd2756
  --hash=sha256:cc89b9b173d9adfab59fd227f0ab5e5516d9a52b658ae41d64e59d2e55a418db
nvidia-cuda-runtime==13.0.96 --hash=sha256:7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
nvidia-cuda-cupti==13.0.85 --hash=sha256:4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8
sympy==1.14.0 --hash=sha256:e091cc3e99d2141a0ba2847328f5479b05d94a6635cb96148ccb3f34671bd8f5
mpmath==1.3.0 --hash=sha256:a0b2b9fe80bbcd81a6647ff13108738cfb482d481d826cc0e02f5b35e5c88d2c
typing-extensions==4.15.0 --hash=sha256:f0fa19c6845758ab08074a0cfa8b7aecb71c999ca73d62883bc25cc018c4e548'

place=.deps/torch-python

say() { printf 'setup_torch.sh: %s\n' "$*"; }
fail() {
  printf 'setup_torch.sh: %s\n' "$*" >&2
  exit 1
}

imports_torch() {
  "$1/python" -c 'import torch.distributed.pipelining as _, torch; assert torch.__version__.startswith("2.11.")' 2>"$1/import.log"
}

# list_packages: a line each for pip; the kept wheel by its name if it is for this python3.
list_packages() {
  local tag kept torch=torch==2.11.0
  tag=$(python3 -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
  if kept=$(compgen -G "./.deps/wheels/torch-2.11.0-$tag-*.whl"); then torch=$kept; fi
  printf '%s' "$wheels" | tr '\n' ' ' | sed "s| \([a-z-]*==\)|\n\1|g" | sed "s|^torch==2.11.0|$torch|"
}

# fetch FOLDER: the packages, without what only building needs.
fetch() {
  local try
  python3 -m pip --version >/dev/null 2>&1 || fail "found no pip for python3; install it with: apt-get install python3-pip"
  list_packages >"$1/requirements.txt"
  for try in 1 2 3; do
    if TMPDIR=$PWD/$1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-cache-dir --no-deps \
      --no-compile --only-binary=:all: --require-hashes --requirement "$1/requirements.txt" --target "$1/packages"; then
      rm -rf "$1"/packages/torch/{include,share,test} "$1"/packages/torch/bin/{ptxas,protoc*}
      return
    fi
    [ "$try" = 3 ] || { say "the download failed, trying again in $((try * 5)) s"; sleep $((try * 5)); }
  done
  fail "PyTorch could not be fetched from PyPI in 3 tries; check the network, and that python3 is 3.10 to 3.13 (it is $(python3 --version)); then run this again"
}

# stand_in FOLDER: an empty library for each that is missing. What is looked up in them is so only when called.
stand_in() {
  local compiler library
  compiler=$(./setup.sh --compiler)
  mkdir "$1/stand-ins"
  ldd "$1/packages/torch/lib/libtorch_python.so" | sed -n 's/^\t*\([^ ]*\) => not found$/\1/p' | sort -u | while read -r library; do
    $compiler -x c++ -shared -nostdlib "-Wl,-soname,$library" -o "$1/stand-ins/$library" /dev/null
  done
  printf 'import os, sys\nsys.setdlopenflags(os.RTLD_LAZY)\n' >"$1/packages/sitecustomize.py"
}

# The library is the build's too: once on disk where the file system can.
share_library() {
  local ours=$1/packages/torch/lib/libtorch_cpu.so theirs=.deps/torch/lib/libtorch_cpu.so
  if cmp -s "$ours" "$theirs"; then ln -f "$theirs" "$ours" || true; fi
}

write_python() {
  # shellcheck disable=SC2016  # for the written script to expand
  printf '%s\n' '#!/bin/sh' 'here=$(dirname "$(readlink -f "$0")")' 'PYTHONPATH=$here/packages${PYTHONPATH:+:$PYTHONPATH}' \
    'LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$here/stand-ins' 'export PYTHONPATH LD_LIBRARY_PATH' 'exec python3 "$@"' >"$1/python"
  chmod +x "$1/python"
}

suffix=$(python3 -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
if [ -x "$place/python" ] && [ -f "$place/packages/torch/_C$suffix" ]; then
  say "ready"
  exit
fi
[ "$(uname -m)" = x86_64 ] || fail "found a machine of type $(uname -m), expected x86_64"
say "making stock PyTorch 2.11 for python3 in $place"
mkdir -p .deps
fetching=$(mktemp -d .deps/.new.XXXXXX)
trap 'rm -rf "$fetching"' EXIT
fetch "$fetching"
stand_in "$fetching"
share_library "$fetching"
write_python "$fetching"
imports_torch "$fetching" || fail "the fetched PyTorch does not load here: $(tail -n 1 "$fetching/import.log")"
rm -rf "$place"
mkdir "$place"
mv "$fetching"/{packages,stand-ins,python} "$place/"
rm -rf .deps/wheels
say "ready"
