#!/usr/bin/env python3
"""Frazil beside stock PyTorch: the same two-stage pipeline, step by step of time.

Runs pairs. In a pair, in an order drawn anew each time, come one run of a stock PyTorch program
(`--baseline`: `<python> <baseline> pipeline --ranks 2 --schedule S ...`, which prints one JSON line)
and one run of bench_pipeline_steps, both on two cores with equal model, micro-batches, steps and
warm-up. Runs of a pair are neighbours in time, so drift of the machine mostly cancels in

    ratio = median step of PyTorch / median step of Frazil        (above 1: Frazil is faster)

Reported per schedule: the median ratio of all pairs and a 95 % percentile bootstrap interval over the
pairs. Nothing is dropped from it, except pairs in which a run failed; these are counted, shown, and
make the exit code 1. `others` is how many cores other programs kept busy during a run. Above about 0.3
a run says little, so a second line repeats the ratio over the pairs in which both runs stayed below
--quiet; repeat the whole in a quiet moment rather than rely on it.

The losses of both sides are shown as a sign that they train, not to be compared: start values and data
are drawn in different ways.
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys

RESAMPLES = 10_000
FEW_PAIRS = 6  # an interval over fewer says next to nothing


def run_program(command, limit):
    """The program's one JSON record; {"error": ...} when it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"error": f"still running after {limit:g} s"}
    except OSError as error:
        return {"error": str(error)}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    try:
        record = json.loads(lines[-1])
    except (IndexError, ValueError):
        record = {"error": "no JSON line"}
    if done.returncode and "error" not in record:
        record = {"error": f"exit code {done.returncode}"}
    if "error" in record:
        record["stderr"] = done.stderr[-2000:]
    elif not record.get("median_s", 0) > 0:
        record["error"] = "no median_s above 0"
    return record


def commands(a, schedule, seed):
    common = ["--schedule", schedule, "--micro-batches", str(a.micro_batches),
              "--steps", str(a.steps), "--warmup", str(a.warmup), "--seed", str(seed)]
    pin = ["--pin"] if a.pin else []
    return {"torch": [a.python, a.baseline, "pipeline", "--ranks", "2", *common, *pin],
            "frazil": [a.program, *common]}


def measure_pairs(a, schedule):
    """A list of {"order": ..., "torch": record, "frazil": record}."""
    draw = random.Random(f"{a.seed} {schedule}")
    pairs = []
    for i in range(a.pairs):
        order = ["torch", "frazil"]
        draw.shuffle(order)
        pair = {"schedule": schedule, "pair": i + 1, "order": order}
        both = commands(a, schedule, seed=i + 1)
        for side in order:
            pair[side] = run_program(both[side], a.limit)
        pairs.append(pair)
        print(row(pair), flush=True)
        for side in order:
            if "error" in pair[side]:
                print(f"    {side}: {pair[side]['error']}\n{pair[side].get('stderr', '')}",
                      file=sys.stderr, flush=True)
    return pairs


def failed(pair):
    return any("error" in pair[side] for side in ("torch", "frazil"))


def ratio(pair):
    return pair["torch"]["median_s"] / pair["frazil"]["median_s"]


def is_quiet(pair, bar):
    loads = [pair[side].get("others") for side in ("torch", "frazil")]
    return all(load is not None and load <= bar for load in loads)


def interval(ratios, seed):
    """2.5 and 97.5 percentiles of the median of resampled ratios."""
    draw = random.Random(seed)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios)))
                     for _ in range(RESAMPLES))
    cut = round(0.025 * RESAMPLES)
    return medians[cut], medians[-1 - cut]


def shown(value, form):
    return "-" if value is None else format(value, form)


HEADER = (f"{'schedule':<9}{'pair':>5}  {'first':<8}{'torch s':>9}{'frazil s':>9}{'ratio':>8}"
          f"{'others torch':>14}{'frazil':>8}   losses torch | frazil")


def row(pair):
    torch, frazil = pair["torch"], pair["frazil"]
    losses = " | ".join(
        " ".join(f"{loss:.3f}" for loss in record.get("losses", [])) or "failed"
        for record in (torch, frazil))
    return (f"{pair['schedule']:<9}{pair['pair']:>5}  {pair['order'][0]:<8}"
            f"{shown(torch.get('median_s'), '.3f'):>9}{shown(frazil.get('median_s'), '.3f'):>9}"
            f"{'failed' if failed(pair) else format(ratio(pair), '.3f'):>8}"
            f"{shown(torch.get('others'), '.2f'):>14}{shown(frazil.get('others'), '.2f'):>8}"
            f"   {losses}")


def summarize(schedule, what, ratios, seed):
    if not ratios:
        return f"{schedule}: {what}: no pair"
    low, high = interval(ratios, seed)
    few = "" if len(ratios) >= FEW_PAIRS else f" (too few pairs; take {FEW_PAIRS} or more)"
    return (f"{schedule}: {what}: median ratio {statistics.median(ratios):.3f}, "
            f"95 % interval {low:.3f} to {high:.3f}, n = {len(ratios)}{few}")


def report(a, schedule, pairs):
    good = [pair for pair in pairs if not failed(pair)]
    lines = [summarize(schedule, "all pairs", [ratio(p) for p in good], a.seed)]
    lines.append(summarize(schedule, f"others <= {a.quiet:g} in both runs",
                           [ratio(p) for p in good if is_quiet(p, a.quiet)], a.seed))
    for side in ("torch", "frazil"):
        if not good:
            continue
        speed = statistics.median(p[side]["samples_per_s"] for p in good)
        loads = [p[side]["others"] for p in good if p[side].get("others") is not None]
        busy = (f"others median {statistics.median(loads):.2f}, most {max(loads):.2f}"
                if loads else "others unknown")
        lines.append(f"{schedule}: {side}: {speed:.1f} samples/s, {busy}")
    if len(good) < len(pairs):
        lines.append(f"{schedule}: {len(pairs) - len(good)} of {len(pairs)} pairs failed")
    return "\n".join(lines)


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    default = pathlib.Path(__file__).resolve().parents[2] / "build/bin/bench_pipeline_steps"
    p.add_argument("--baseline", required=True, help="the stock PyTorch program")
    p.add_argument("--python", default=sys.executable,
                   help="a Python that can import torch (default: this one)")
    p.add_argument("--program", default=str(default), help="default: %(default)s")
    p.add_argument("--schedules", default="gpipe,1f1b", help="default: %(default)s")
    p.add_argument("--pairs", type=int, default=10, help="per schedule, default %(default)s")
    p.add_argument("--micro-batches", type=int, default=8, help="default %(default)s")
    p.add_argument("--steps", type=int, default=12,
                   help="of each run, warm-up included, default %(default)s")
    p.add_argument("--warmup", type=int, default=3, help="default %(default)s")
    p.add_argument("--pin", action="store_true",
                   help="let the baseline pin its ranks to cores, as Frazil always does")
    p.add_argument("--seed", type=int, default=1, help="of the orders and the bootstrap")
    p.add_argument("--quiet", type=float, default=0.3,
                   help="cores of others up to which a run counts as undisturbed, default %(default)s")
    p.add_argument("--limit", type=float, default=600, help="seconds for one run")
    p.add_argument("--out", help="all records as JSON lines, one pair each")
    a = p.parse_args(argv)
    a.schedules = a.schedules.split(",")
    if set(a.schedules) - {"gpipe", "1f1b"}:
        p.error("--schedules: a comma list of gpipe and 1f1b")
    if a.pairs < 1 or not 0 <= a.warmup < a.steps:
        p.error("at least one pair, and more steps than warm-up")
    return a


def main():
    a = parse(sys.argv[1:])
    print(HEADER)
    by_schedule = {schedule: measure_pairs(a, schedule) for schedule in a.schedules}
    if a.out:
        with open(a.out, "w") as out:
            for pairs in by_schedule.values():
                out.writelines(json.dumps(pair) + "\n" for pair in pairs)
    print()
    for schedule, pairs in by_schedule.items():
        print(report(a, schedule, pairs))
    return 1 if any(failed(p) for pairs in by_schedule.values() for p in pairs) else 0


if __name__ == "__main__":
    sys.exit(main())
