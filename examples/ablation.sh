#!/usr/bin/env bash
# What freezing, AutoPipe, AutoDP and AutoCache bring over the best plan without them, measured: `frazil ablate` on the
# handwritten digits under a memory limit at which the unfrozen model takes two stages (all arms, 8 seeds), and on a
# pre-trained encoder that learns to judge film reviews (the best plan without freezing and all of it, 2 seeds).
#   examples/ablation.sh [--soak] [FOLDER]     results go to FOLDER, default ablation/
# On two idle cores three seeds of the digits took 2 minutes; the whole has not been timed. With --soak the encoder takes
# four arms under 8 seeds, then all arms for two epochs under 2 seeds. What has finished in FOLDER is not run again.
# The encoder takes PyTorch, transformers and two packages of PyPI (examples/requirements.txt); without them it is left out.
set -euo pipefail
cd "$(dirname "$0")/.."
seeds=2 arms=unfrozen,all soak=
if [ "${1:-}" = --soak ]; then soak=yes seeds=8 arms=unfrozen,freeze,all,shorter; shift; fi
case "${1:-}" in
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
  -*) echo "ablation.sh: found $1, expected --soak, a folder or --help" >&2; exit 2 ;;
esac
folder=${1:-ablation}
frazil=build/bin/frazil
python=${PYTHON:-.deps/torch-python/python}
export PYTHONPATH=$PWD/python${PYTHONPATH:+:$PYTHONPATH}
if [ ! -x $frazil-train ]; then
  echo 'ablation.sh: build/bin/frazil-train is not there: ./setup.sh && cmake --preset release && cmake --build --preset release --target programs' >&2
  exit 1
fi

say() { printf '\n== %s (%d:%02d)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }
# measure FOLDER RUN LIMIT: a profile on two devices, once.
measure() {
  [ -e "$1/cluster.json" ] || $frazil profile --run "$2" --devices 2 --memory-limit "$3" --quiet --out "$1/model.json" --cluster-out "$1/cluster.json"
}
# ablate FOLDER RUN OUT FLAG...
ablate() {
  $frazil ablate --run "$2" --profile "$1/model.json" --cluster "$1/cluster.json" --out "$1/$3" --html "$1/$3.html" "${@:4}" | tee "$1/$3.txt"
}

say 'digits, devices of 8 MiB'
mkdir -p "$folder/digits"
measure "$folder/digits" examples/ablation/digits.json 8MiB
ablate "$folder/digits" examples/ablation/digits.json arms --seeds 8

say 'the encoder, devices without a limit'
reviews=$folder/reviews
mkdir -p "$reviews"
if ! command -v "$python" >/dev/null || ! "$python" -c 'import frazil, torch, transformers' 2>/dev/null; then
  echo "left out: $python has no frazil, torch and transformers (pip install './python[export]' -r examples/requirements.txt; PYTHON names another)"
  exit 0
fi
[ -e "$reviews/reviews.txt" ] || "$python" examples/sentiment/fetch.py "$reviews"
[ -e "$reviews/test.safetensors" ] || "$python" examples/sentiment/prepare.py "$reviews" --test 3000
[ -e "$reviews/model.safetensors" ] || "$python" examples/sentiment/export.py "$reviews" --epochs 8 >/dev/null
measure "$reviews" "$reviews/run.json" 4GiB
ablate "$reviews" "$reviews/run.json" arms --arms $arms --seeds $seeds
if [ -n "$soak" ]; then
  sed 's/"epochs": 8/"epochs": 2/' "$reviews/run.json" >"$reviews/short.json"
  ablate "$reviews" "$reviews/short.json" short --seeds 2
fi
