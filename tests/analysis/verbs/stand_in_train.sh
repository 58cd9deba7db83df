#!/bin/bash
# Stands in for `frazil train` beside `frazil ablate`: answers as train does. The file `planted` beside it has lines
# "ARM SEED ACCURACY SECONDS", in which ACCURACY may be `fails` or `hangs` (its process is then told in `hanging`); other runs have accuracy 0.5 and take 4 s. The file
# `calls` gets a line for each run.
# `--check` holds, unless `planted` has the line "check refuses".
here=$(dirname "$0")
if [[ " $* " == *' --check '* ]]; then
  grep -q '^check refuses' "$here/planted" || exit 0
  echo '{"error": {"code": 2, "sentence": "", "file": "run.json", "line": 7, "found": "a planted fault", "expected": "none"}}'
  exit 2
fi
echo "$*" >> "$here/calls"
while [ $# -gt 0 ]; do case $1 in --run) run=$2 ;; --out) out=$2 ;; esac; shift; done
pair=$(dirname "$run"); seed=${pair##*-}; arm=$(basename "$(dirname "$pair")")
read -r accuracy seconds < <(awk -v a="$arm" -v s="$seed" \
  '$1 == a && $2 == s {print $3, $4; found = 1} END {if (!found) print 0.5, 4}' "$here/planted")
if [ "$accuracy" = fails ]; then
  echo "frazil train: warming up" >&2
  echo "frazil train: step 3: the loss is not finite" >&2
  exit 10
fi
if [ "$accuracy" = hangs ]; then
  trap 'exit 143' TERM
  echo $$ > "$here/hanging"
  while :; do sleep 0.02; done
fi
mkdir -p "$out"
header='"format":"frazil.freeze_trace","version":1,"model_hash":"0123456789abcdef",'
header+='"blocks":["block0","block1","block2","block3"],"steps":4,"open":true,"batch_size":8,"provenance":{}'
first='{"step":0,"kind":"mask","mask":"1111"}'
second='{"step":2,"kind":"mask","mask":"0011"}'
printf '{%s}\n%s\n%s\n' "$header" "$first" "$second" > "$out/trace.jsonl"
printf '{%s}\n%s\n' "$header" "$first" > "$out/events.jsonl"
printf '{"step":4,"kind":"eval","epoch":1,"train_loss":1,"loss":1,"accuracy":%s}\n' "$accuracy" >> "$out/events.jsonl"
printf '{"accuracy": %s, "loss": 1, "test_samples": 400, "wall_time_ns": %s000000000, ' "$accuracy" "$seconds"
printf '"state_hash": "ab", "phases": [{"first_step": 0, "mask": "1111", "plan": "a plan", '
printf '"stages": 2, "pipelines": 1, "devices": 2, "steps": 4, "wall_time_ns": %s000000000}]}\n' "$seconds"
