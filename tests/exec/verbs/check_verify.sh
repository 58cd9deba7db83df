#!/usr/bin/env bash
# check_verify.sh FOLDER CONFIGURATION: the programs in FOLDER profile and plan the run, then `verify` passes it as it is
# (exit 0) and finds a layer that was made 20 % slower (exit 4). Both verdicts need a quiet machine.
set -euo pipefail
folder=${1:?usage: check_verify.sh FOLDER CONFIGURATION}
configuration=${2:?usage: check_verify.sh FOLDER CONFIGURATION}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$folder/frazil" profile --run "$configuration" --memory-limit 8MiB --out "$work/model.json" --cluster-out "$work/cluster.json"
"$folder/frazil" plan --profile "$work/model.json" --cluster "$work/cluster.json" --batch 32 --micro-batch 8 --schedules gpipe,1f1b --no-recompute --out "$work/plan.json"

# expect CODE FLAGS...
expect() {
  local expected=$1 code=0
  shift
  "$folder/frazil" verify --run "$configuration" --cluster "$work/cluster.json" --plan "$work/plan.json" --quiet "$@" || code=$?
  if [ "$code" -ne "$expected" ]; then
    printf 'verify %s: found exit code %d, expected %d\n' "$*" "$code" "$expected" >&2
    exit 1
  fi
}

expect 0
expect 4 --plant 5:20
