#!/usr/bin/env bash
# Kills, signals, faults, damaged files and fuzzing, one campaign after the other, and a table of what was tried and found.
#   tests/soak/campaign.sh [--seed N] [--share PERCENT] [--only NAME[,NAME]]
# --seed draws all again as in an earlier run, but for the moments of kills, signals and flips in a cache, and faults, which draw for themselves. --share scales
# how much is tried, for a quick look. FRAZIL names the front door (default: build/bin/frazil), FRAZIL_TESTS the folder of the test programs
# (default: that of FRAZIL), FRAZIL_FUZZERS that of the fuzzers (default: build/fuzz/bin). Exits with 1 if anything was lost, has other bits
# or crashed, and if a campaign was skipped or tried less than it was to; what bad tries leave lies in ./soak-found. docs/reliability.md says
# what each campaign does.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
all=(kills signals journal_flips corruptions cache_flips mutants faults member_kills member_changes transitions message_kills torn_steps crowded fuzz)
chosen=("${all[@]}")
seed=$((RANDOM * 32768 + RANDOM))
share=100
begun=$(date -u '+%Y-%m-%d %H:%M:%S UTC')

usage() {
  printf 'campaign.sh: found %s, expected --seed N, --share PERCENT or --only NAME[,NAME] with names among: %s\n' "$1" "${all[*]}" >&2
  exit 2
}

is_known() { [[ " ${all[*]} " == *" $1 "* ]]; }

while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || usage "$1"
  case $1 in
    --seed) seed=$2 ;;
    --share) share=$2 ;;
    --only)
      IFS=, read -ra chosen <<<"$2"
      for name in "${chosen[@]}"; do is_known "$name" || usage "campaign $name"; done
      ;;
    *) usage "$1" ;;
  esac
  shift 2
done

# print_table FILE: the rows of the campaigns, columns as wide as they have to be.
print_table() {
  {
    printf 'campaign | tries | of | checked | bad | seconds\n'
    sed 's/^ROW //' "$1"
  } | awk -F ' [|] ' '{ printf "%-14s %9s %7s %5s %8s  %s\n", $1, $2, $3, $5, $6, $4 }'
}

# print_tree: which sources the campaigns are of, and which programs they try. The programs may have been built of others.
print_tree() {
  local frazil=${FRAZIL:-$here/../../build/bin/frazil} commit
  commit=$(git -C "$here" rev-parse --short=12 HEAD 2>/dev/null || printf 'none')
  if [ "$commit" != none ] && [ -n "$(git -C "$here" status --porcelain --untracked-files=no)" ]; then commit+=' with changes'; fi
  printf 'tree %s, commit %s\n' "$(cd "$here/../.." && pwd)" "$commit"
  printf 'programs %s of %s\n' "$(dirname "$frazil")" "$(date -u -r "$frazil" '+%Y-%m-%d %H:%M:%S UTC' 2>/dev/null || printf 'no time: there are none')"
  printf 'begun %s on %s cores, seed %s, %s %% of the tries\n' "$begun" "$(nproc)" "$seed" "$share"
}

print_tree
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
bad=0
for name in "${chosen[@]}"; do
  code=0
  printf '== %s (%d:%02d)\n' "$name" $((SECONDS / 60)) $((SECONDS % 60))
  "$here/$name.py" --seed "$seed" --share "$share" | tee "$logs/$name" || code=$?
  grep '^ROW ' "$logs/$name" >>"$logs/rows" || printf 'ROW %s | 0 | ? | ended with exit code %d and no row | 1 | 0\n' "$name" "$code" >>"$logs/rows"
  [ "$code" = 0 ] || bad=1
done
printf '\n'
print_tree
printf 'of: how many tries there should be at least; bad: lost runs, wrong bits, crashes\n\n'
print_table "$logs/rows"
exit "$bad"
