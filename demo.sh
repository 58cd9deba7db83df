#!/usr/bin/env bash
# The whole of Frazil on real data without an accelerator: profile a vision transformer on handwritten
# digits, plan it under a memory limit per device, simulate the plan, train it elastically (a pipeline of
# two stages first; two replicas once frozen layers make room), and lay predicted beside measured.
#   ./demo.sh [FOLDER]     results go to FOLDER, default demo/
set -euo pipefail
cd "$(dirname "$0")"
case "${1:-}" in
  -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
  -*) echo "demo.sh: found $1, expected a folder or --help" >&2; exit 2 ;;
esac
folder=${1:-demo}
run=exec/runs/digits.json
# The whole active model does not fit into this on one device; the model with its first layers frozen does.
memory_limit=8MiB

say() { printf '\n== %s (%d:%02d)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }
# show VERB ARGUMENTS...: the command as it can be typed, then what it answers.
show() {
  printf '$ frazil'
  printf ' %q' "$@"
  printf '\n'
  build/bin/frazil "$@"
}

say 'set up and build'
./setup.sh
CXX=$(./setup.sh --compiler)
export CXX
mkdir -p build "$folder"
[ -x build/bin/frazil-train ] || echo 'building, 2 to 6 minutes on 2 cores; build/demo-build.log has the compiler'"'"'s words'
if ! { cmake --preset release "-DFRAZIL_TORCH=${FRAZIL_TORCH:-}" && cmake --build --preset release --target programs; } >build/demo-build.log 2>&1; then
  tail -n 30 build/demo-build.log >&2
  echo 'demo.sh: the build failed; build/demo-build.log has it all' >&2
  exit 1
fi

say "profile: every layer inside real training steps, two devices of $memory_limit"
show profile --run $run --devices 2 --memory-limit $memory_limit --out "$folder/model.json" --cluster-out "$folder/cluster.json"

say 'plan: what fits, ranked by the simulator'
show plan --profile "$folder/model.json" --cluster "$folder/cluster.json" --batch 32 --micro-batch 8 --schedules gpipe,1f1b --no-recompute --out "$folder/plan.json"

say 'simulate: the best plan, one step'
show simulate --plan "$folder/plan.json" --profile "$folder/model.json" --cluster "$folder/cluster.json"

say 'train: three seeds, each elastically (layers freeze from epoch 11 on) and with all layers to the end'
for seed in 1 2 3; do
  for kind in elastic unfrozen; do
    flags=(--run $run --profile "$folder/model.json" --cluster "$folder/cluster.json" --schedules gpipe,1f1b --seed $seed --out "$folder/$kind-$seed" --force)
    if [ $kind = unfrozen ]; then flags+=(--no-freeze); fi
    printf '\n'
    show train "${flags[@]}" | tee "$folder/$kind-$seed.txt"
  done
done

say 'the three seeds side by side'
# Speed is compared by pairs, one elastic run and the unfrozen one right after it: the median of three pairs, and how far they lie apart.
awk -v folder="$folder" '
  function after(line, words, pattern) {
    if (!match(line, words pattern)) return ""
    return substr(line, RSTART + length(words), RLENGTH - length(words))
  }
  function read(kind, seed,   file, line, found) {
    file = folder "/" kind "-" seed ".txt"
    while ((getline line < file) > 0) {
      if ((found = after(line, "test accuracy ", "[0-9.]+")) != "") accuracy[kind, seed] = found
      if ((found = after(line, "training time ", "[0-9.]+")) != "") seconds[kind, seed] = found
      if ((found = after(line, "other programs kept ", "[0-9.]+")) != "") cores[kind, seed] = found
    }
  }
  function largest(a, b) { return a > b ? a : b }
  function smallest(a, b) { return a < b ? a : b }
  BEGIN {
    quiet = 0.15  # cores; above, train and report say that times may be too long
    printf "%-6s %18s %18s %12s %12s %8s %16s\n", "seed", "elastic accuracy", "unfrozen accuracy", "elastic s", "unfrozen s", "speed", "other programs"
    for (seed = 1; seed <= 3; seed++) {
      read("elastic", seed); read("unfrozen", seed)
      e = accuracy["elastic", seed]; u = accuracy["unfrozen", seed]; s = seconds["elastic", seed]; t = seconds["unfrozen", seed]
      other = largest(cores["elastic", seed] + 0, cores["unfrozen", seed] + 0)
      if (other > quiet) busy++
      printf "%-6d %16.2f %% %16.2f %% %12.2f %12.2f %7.2fx %10.2f cores%s\n", seed, e, u, s, t, t / s, other, (other > quiet ? " *" : "")
      if (seed == 1 || e < worst) worst = e
      if (u < worst) worst = u
      difference += (u - e) / 3; speed[seed] = t / s
    }
    low = smallest(speed[1], smallest(speed[2], speed[3])); high = largest(speed[1], largest(speed[2], speed[3]))
    printf "unfrozen - elastic accuracy: %.2f points on average\n", difference
    printf "elastic training is %.2f times as fast: median of three pairs, %.2f to %.2f%s\n", speed[1] + speed[2] + speed[3] - low - high, low, high, (busy ? " *" : "")
    if (busy) printf "* note: other programs kept more than %.2f cores busy during %d of 3 pairs, so this speed is no measurement; run the demo on a quiet machine\n", quiet, busy
    if (worst < 92.5 || difference > 1 || difference < -1) {
      print "demo.sh: found an accuracy of " worst " % or a difference of " difference " points, expected at least 92.5 % each and at most 1 point" > "/dev/stderr"
      exit 1
    }
  }' </dev/null
for seed in 1 2 3; do
  if ! grep -q '^ *0 .*2 stages x 1 pipeline,' "$folder/elastic-$seed.txt" || ! grep -q '1 stage x 2 pipelines,' "$folder/elastic-$seed.txt"; then
    echo "demo.sh: found a run of seed $seed that did not go from 2 stages to 2 replicas, expected that under $memory_limit a device" >&2
    exit 1
  fi
done

say 'report: predicted above measured, phase by phase, of seed 1'
show report "$folder/elastic-1" "$folder/unfrozen-1" --title 'Frazil: elastic training on handwritten digits' --out "$folder/report.html"
page=$(realpath "$folder/report.html")
say 'done'
printf 'Open the page %s in a browser.\n' "$page"
printf 'It lays the two runs of seed 1 side by side; frazil report does the same for the folders of seeds 2 and 3, %s.\n' "$folder/{elastic,unfrozen}-{2,3}"
