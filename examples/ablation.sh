#!/usr/bin/env bash
# What freezing, AutoPipe, AutoDP and AutoCache bring over the best plan without them, measured: `frazil ablate` on the
# handwritten digits under a memory limit at which the unfrozen model takes two stages (all arms, 8 seeds), and on a
# pre-trained encoder that learns to judge film reviews (the best plan without freezing and all of it, 2 seeds).
#   examples/ablation.sh [--soak] [FOLDER]     results go to FOLDER, default ablation/
# With --soak the encoder has four arms under as many seeds as a pilot of four other seeds asks for; then, with devices
# on which the unfrozen model does not fit, all arms for two epochs under 4 seeds. That takes some hours, in as many
# sittings as one likes: what has finished in FOLDER is not run again.
# The encoder takes PyTorch, transformers and two packages of PyPI (examples/requirements.txt); without them it is left out.
set -euo pipefail
cd "$(dirname "$0")/.."
soak=
if [ "${1:-}" = --soak ]; then soak=yes; shift; fi
case "${1:-}" in
  -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
  -*) echo "ablation.sh: found $1, expected --soak, a folder or --help" >&2; exit 2 ;;
esac
if [ $# -gt 1 ]; then echo "ablation.sh: found $2 behind the folder, expected --soak before it, and nothing else" >&2; exit 2; fi
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
# ablate FOLDER RUN OUT FLAG...: a folder for the runs, a page, a picture, a row for each run, and a table.
ablate() {
  $frazil ablate --run "$2" --profile "$1/model.json" --cluster "$1/cluster.json" --out "$1/$3" --html "$1/$3.html" --svg "$1/$3.svg" --csv "$1/$3.csv" "${@:4}" | tee "$1/$3.txt"
}

say 'digits, devices of 8 MiB'
mkdir -p "$folder/digits"
measure "$folder/digits" examples/ablation/digits.json 8MiB
ablate "$folder/digits" examples/ablation/digits.json arms --seeds 8 --samples 1437

say 'the encoder, devices without a limit'
reviews=$folder/reviews
mkdir -p "$reviews"
if ! command -v "$python" >/dev/null || ! "$python" -c 'import frazil, torch, transformers' 2>/dev/null; then
  echo "left out: $python has no frazil, torch and transformers (pip install './python[export]' -r examples/requirements.txt; PYTHON names another)"
  exit 0
fi
[ -e "$reviews/reviews.txt" ] || "$python" examples/sentiment/fetch.py "$reviews"
[ -e "$reviews/test.safetensors" ] || "$python" examples/sentiment/prepare.py "$reviews" --test 3000
[ -e "$reviews/model.safetensors" ] || "$python" examples/sentiment/export.py "$reviews" >/dev/null
cp examples/ablation/reviews.json "$reviews/run.json"
measure "$reviews" "$reviews/run.json" 4GiB
if [ -z "$soak" ]; then
  ablate "$reviews" "$reviews/run.json" arms --samples 2000 --arms unfrozen,all --seeds 2
  exit 0
fi
ablate "$reviews" "$reviews/run.json" pilot --samples 2000 --arms unfrozen,all --seed-list 201,202,203,204 --pilot-out "$reviews/pilot.json"
ablate "$reviews" "$reviews/run.json" arms --samples 2000 --arms unfrozen,freeze,all,shorter --pilot "$reviews/pilot.json"

say 'the encoder, devices of 360 MiB'
limited=$folder/limited
mkdir -p "$limited"
# Two epochs in which half of what trains freezes every third of an epoch: what the arms learn so is not looked at.
sed 's/"epochs": 3/"epochs": 2/; s/"start_epoch": 3/"start_step": 21, "interval_steps": 21/' "$reviews/run.json" >"$reviews/short.json"
measure "$limited" "$reviews/short.json" 360MiB
ablate "$limited" "$reviews/short.json" arms --samples 2000 --seeds 4
