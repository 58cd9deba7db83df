#!/usr/bin/env bash
# Makes .deps/torch-python: stock PyTorch 2.11 for the CPU, Holistic Trace Analysis 0.5 and transformers 4.57 with peft 0.18, as Python packages, and `python`, which starts python3 with them. Takes the
# torch wheel that ./setup.sh --keep-wheel left in .deps/wheels, else fetches it from PyPI (531 MB, and 20 MB besides); 1.1 GB kept, 450 MB of it shared with the
# build's libtorch. The others and what they import are 63 MB more, 245 MB on disk. What is there already is not fetched again; a quick no-op when all is.
# Of CUDA, PyTorch needs little more than names until it is used: libraries that the machine lacks are stood in for by empty ones.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Pinned by content, for Python 3.10 to 3.13.
torch_wheels='
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

# Without the notebooks that the analysis asks for and never imports.
analysis_wheels='
holistictraceanalysis==0.5.0 --hash=sha256:dbb4d461ff5ea7488207e07de5e2f52aeb5d82837ec6acfe57e1f0a124972ec3
numpy==2.2.6
  --hash=sha256:fc7b73d02efb0e18c000e9ad8b83480dfcd5dfd11065997ed4c6747470ae8915
  --hash=sha256:ba10f8411898fc418a521833e014a77d3ca01c15b0c6cdcce6a0d2897e6dbbdf
  --hash=sha256:fd83c01228a688733f1ded5201c678f0c53ecc1006ffbc404db9f7a899ac6249
  --hash=sha256:1bc23a79bfabc5d056d106f9befb8d50c31ced2fbc70eedb8155aec74a45798f
pandas==2.3.2
  --hash=sha256:cc03acc273c5515ab69f898df99d9d4f12c4d70dbfc24c3acc6203751d0804cf
  --hash=sha256:1d81573b3f7db40d020983f78721e9bfc425f411e616ef019a10ebf597aedb2e
  --hash=sha256:96d31a6b4354e3b9b8a2c848af75d31da390657e3ac6f30c05c82068b9ed79b9
  --hash=sha256:4ac8c320bded4718b298281339c1a50fb00a6ba78cb2a63521c39bec95b0209b
python-dateutil==2.9.0.post0 --hash=sha256:a8b2bc7bffae282281c8140a97d3aa9c14da0b136dfe83f850eea9a5f7470427
pytz==2026.6 --hash=sha256:7fed3fee8fd6bd4a2b7b75a8d56021d0624127bf69bd5691f115db929ac570b3
tzdata==2026.6 --hash=sha256:0a10eec6e13ef16b627fabed9a5f2ba61a62b1c67f327305f4e7e412a70b4aec
six==1.17.0 --hash=sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274
plotly==7.1.0 --hash=sha256:dbb7fa18afce40d0a8e80d1bf162eceb3faa0ce5a77fe741ad09a74cf78f53f3
narwhals==2.29.0 --hash=sha256:1c69b3dc30240f6e848c5a673cafc86affa44184ecce721e25b7194663ad10dc
packaging==26.3 --hash=sha256:d7193f7c8e4e93f444fde0262bf90af30e16fa0ad0ad44cb553c87339b23cd1c
networkx==3.4.2 --hash=sha256:df5d4365b724cf81b8c6a7312509d0c22386097011ad1abe274afd5e9d3bbc5f
psutil==7.2.2 --hash=sha256:076a2d2f923fd4821644f5ba89f059523da90dc9014e85f8e45a5774ca5bc6f9
pyyaml==6.0.3
  --hash=sha256:9c7708761fccb9397fe64bbc0395abcae8c4bf7b0eac081e12b809bf47700d0b
  --hash=sha256:b8bb0864c5a28024fac8a632c443c87c5aa6f215c0b126c449ae1a150412f31d
  --hash=sha256:ba1cc08a7ccde2d2ec775841541641e4548226580ab850948cbfda66a1befcdc
  --hash=sha256:0f29edc409a6392443abf94b9cf89ce99889a1dd5376d94316ae5145dfedd5d6'

# With what it imports; numpy, packaging and pyyaml come with the analysis.
transformers_wheels='
transformers==4.57.6 --hash=sha256:4c9e9de11333ddfe5114bc872c9f370509198acf0b87a832a0ab9458e2bd0550
tokenizers==0.22.2 --hash=sha256:369cc9fc8cc10cb24143873a0d95438bb8ee257bb80c71989e3ee290e8d72c67
safetensors==0.8.0 --hash=sha256:fd6f3f93c9a0a7cc2788ee63fb763353d4bd2e89b0751bc78fcf7dda00bea774
huggingface-hub==0.36.2 --hash=sha256:48f0c8eac16145dfce371e9d2d7772854a4f591bcb56c9cf548accf531d54270
regex==2025.11.3
  --hash=sha256:2ab815eb8a96379a27c3b6157fcb127c8f59c36f043c1678110cea492868f1d5
  --hash=sha256:10483eefbfb0adb18ee9474498c9a32fcf4e594fbca0543bb94c48bac6183e2e
  --hash=sha256:a12ab1f5c29b4e93db518f5e3872116b7e9b1646c9f9f426f777b50d44a09e8c
  --hash=sha256:4aecb6f461316adf9f1f0f6a4a1a3d79e045f9b71ec76055a791affa3b285850
requests==2.34.2 --hash=sha256:2a0d60c172f83ac6ab31e4554906c0f3b3588d37b5cb939b1c061f4907e278e0
urllib3==2.8.0 --hash=sha256:0cf3cae568d36aa9576b28dfb35f11328f1cb974ca7647d9475ebb86c75ac6e3
idna==3.20 --hash=sha256:ab7ae7122974553370f0bdb919e1a960b2cd1bc1ef0276416d896db81c14582c
certifi==2026.10.19.post1 --hash=sha256:1324c476b4811eff41a8bc2122cd0bbd4d9c7234c725446d99ab1612b3a7fdd2
charset-normalizer==3.5.3 --hash=sha256:96e268b0cbda016ac519513294fcd17032264085b600abaac58b93049477e132
filelock==4.3.1 --hash=sha256:79e43df8e9fe509cd83a3899a7c186c8077cbbe4d200a1ed3705c2f3bb6bc487
fsspec==2026.9.0 --hash=sha256:8dd6e646e99ea382bd85f97a45e6b526a442d79423a7dc673f1e2756d05fcb5f
tqdm==4.70.1 --hash=sha256:c293e525e6fef9c20e8728fd4612df02a0aa31bb5fe91ecd93e123b1b7bffa73
peft==0.18.1 --hash=sha256:0bf06847a3551e3019fc58c440cffc9a6b73e6e2962c95b52e224f77bbdb50f1
accelerate==1.12.0 --hash=sha256:3e2091cd341423207e2f084a6654b1efcd250dc326f2a37d6dde446e07cabb11'

place=.deps/torch-python

say() { printf 'setup_torch.sh: %s\n' "$*"; }
fail() {
  printf 'setup_torch.sh: %s\n' "$*" >&2
  exit 1
}

imports_torch() {
  "$1/python" -c 'import torch.distributed.pipelining as _, torch; assert torch.__version__.startswith("2.11.")' 2>"$1/import.log"
}

# list_packages WHEELS: a line each for pip; the kept torch wheel by its name if it is for this python3.
list_packages() {
  local tag kept torch=torch==2.11.0
  tag=$(python3 -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
  if kept=$(compgen -G "./.deps/wheels/torch-2.11.0-$tag-*.whl"); then torch=$kept; fi
  printf '%s' "$1" | tr '\n' ' ' | sed "s| \([a-z0-9-]*==\)|\n\1|g" | sed "s|^torch==2.11.0|$torch|"
}

# fetch WHAT WHEELS FOLDER: packages, into FOLDER/packages.
fetch() {
  local try
  python3 -m pip --version >/dev/null 2>&1 || fail "found no pip for python3; install it with: apt-get install python3-pip"
  list_packages "$2" >"$3/requirements.txt"
  for try in 1 2 3; do
    if TMPDIR=$PWD/$3 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-cache-dir --no-deps \
      --no-compile --only-binary=:all: --require-hashes --requirement "$3/requirements.txt" --target "$3/packages"; then
      return
    fi
    [ "$try" = 3 ] || { say "the download failed, trying again in $((try * 5)) s"; sleep $((try * 5)); }
  done
  fail "$1 could not be fetched from PyPI in 3 tries; check the network, and that python3 is 3.10 to 3.13 (it is $(python3 --version)); then run this again"
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

# make_torch FOLDER: the place, with PyTorch alone; without what only building needs.
make_torch() {
  say "making stock PyTorch 2.11 for python3 in $place"
  fetch PyTorch "$torch_wheels" "$1"
  rm -rf "$1"/packages/torch/{include,share,test} "$1"/packages/torch/bin/{ptxas,protoc*}
  stand_in "$1"
  share_library "$1"
  write_python "$1"
  imports_torch "$1" || fail "the fetched PyTorch does not load here: $(tail -n 1 "$1/import.log")"
  rm -rf "$place"
  mkdir "$place"
  mv "$1"/{packages,stand-ins,python} "$place/"
  rm -rf .deps/wheels
}

# add_analysis FOLDER: hta last, for its presence says that all is there.
add_analysis() {
  local path
  say "adding Holistic Trace Analysis 0.5, transformers 4.57 and peft 0.18 to $place (63 MB from PyPI)"
  mkdir "$1"
  fetch "Holistic Trace Analysis" "$analysis_wheels" "$1"
  rm -rf "$1/packages/bin"  # pip warns of a folder that is there
  fetch "transformers or peft" "$transformers_wheels" "$1"
  rm -rf "$1"/packages/{bin,share,param_bench,pandas/tests}
  PYTHONPATH=$1/packages python3 -c 'import hta.trace_analysis, transformers' 2>"$1/import.log" ||
    fail "the fetched Holistic Trace Analysis or transformers does not load here: $(tail -n 1 "$1/import.log")"
  mv "$1/packages/hta" "$1/hta"
  for path in "$1"/packages/* "$1/hta"; do
    rm -rf "$place/packages/${path##*/}"
    mv "$path" "$place/packages/"
  done
}

suffix=$(python3 -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
has_torch() { [ -x "$place/python" ] && [ -f "$place/packages/torch/_C$suffix" ]; }
has_analysis() { [ -d "$place/packages/hta" ] && [ -d "$place/packages/transformers" ] && [ -d "$place/packages/peft" ] && [ -f "$place/packages/numpy/_core/_multiarray_umath$suffix" ]; }
if has_torch && has_analysis; then
  say "ready"
  exit
fi
[ "$(uname -m)" = x86_64 ] || fail "found a machine of type $(uname -m), expected x86_64"
mkdir -p .deps
fetching=$(mktemp -d .deps/.new.XXXXXX)
trap 'rm -rf "$fetching"' EXIT
if ! has_torch; then make_torch "$fetching"; fi
if ! has_analysis; then add_analysis "$fetching/analysis"; fi
say "ready"
