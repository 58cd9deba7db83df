#!/usr/bin/env python3
"""Frazil beside stock PyTorch: the same model on two cores, step by step of time.

Runs pairs. In a pair, in an order drawn anew each time, come one run of a stock PyTorch program
(`--baseline`, which prints one JSON line) and one run of bench_pipeline_steps, with equal model,
micro-batches, cuts, places of stages, steps and warm-up (a pair whose runs say otherwise has
failed). Each of --schedules is a line of the comparison, with micro-batches of its own where it says
so (zbv:4):

    gpipe, 1f1b, interleaved, izb, zbv   <python> <baseline> pipeline --ranks 2 --schedule ...
    replicas                             <python> <baseline> ddp --ranks 2, half the micro-batches
                                         for each rank; Frazil's two pipelines of one stage

A round is one pair of every line, lines in an order drawn anew. Runs of a pair are neighbours in
time, so drift of the machine mostly cancels in

    ratio = median step of PyTorch / median step of Frazil        (above 1: Frazil is faster)

Reported per line: the median ratio of all pairs and a 95 % percentile bootstrap interval over the
pairs; of each side the median step and the least and most of all pairs, CPU seconds of a step (all
ranks or devices) and how many cores other programs kept busy (`others`). Nothing is dropped, except
pairs in which a run failed; these are counted, shown, and make the exit code 1. A line that Frazil
refuses (exit code 3) is not tried again. Above about 0.3 `others` a run says little, so a second
figure repeats the ratio over the pairs in which both runs stayed below --quiet; repeat the whole in a
quiet moment rather than rely on it.

The losses of both sides are shown as a sign that they train, not to be compared: start values and data
are drawn in different ways.
"""

import argparse
import dataclasses
import json
import pathlib
import random
import statistics
import subprocess
import sys

RESAMPLES = 10_000
FEW_PAIRS = 6  # an interval over fewer says next to nothing
REFUSED = 3  # exit code of a program that cannot perform a plan
MODELS = {"tiny": {"layers": 12, "dim": 192, "heads": 3, "batch": 64},
          "wide": {"layers": 8, "dim": 384, "heads": 6, "batch": 32}}
# Devices of the stages: as the baseline places them.
PLACES = {"gpipe": [0, 1], "1f1b": [0, 1], "interleaved": [0, 1, 0, 1], "izb": [0, 1, 0, 1],
          "zbv": [0, 1, 1, 0], "replicas": [0]}
SCHEDULES = "1f1b,gpipe,interleaved,izb,zbv,zbv:4,replicas"


@dataclasses.dataclass(frozen=True)
class Line:
    schedule: str
    micro_batches: int
    reduction: str

    def __str__(self):
        fast = "" if self.reduction == "exact" else f" {self.reduction}"
        return f"{self.schedule} M={self.micro_batches}{fast}"

    def cuts(self, model):
        """Transformer layers before each stage but the first."""
        stages = len(PLACES[self.schedule])
        return [MODELS[model]["layers"] * s // stages for s in range(1, stages)]


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
        said = done.stderr.strip().splitlines()
        record = {"error": said[-1][:300] if said else "no JSON line"}
    if done.returncode and "error" not in record:
        record = {"error": f"exit code {done.returncode}"}
    if "error" in record:
        record["exit_code"] = done.returncode
    if "error" in record:
        record["stderr"] = done.stderr[-2000:]
    elif not record.get("median_s", 0) > 0:
        record["error"] = "no median_s above 0"
    return record


def commands(a, line, seed):
    shape = [text for flag, value in MODELS[a.model].items() for text in (f"--{flag}", str(value))]
    common = ["--steps", str(a.steps), "--warmup", str(a.warmup), "--seed", str(seed)]
    pin = ["--pin"] if a.pin else []
    if line.schedule == "replicas":
        torch = ["ddp", "--ranks", "2", "--micro-batches", str(line.micro_batches // 2)]
    else:
        cuts = ",".join(str(cut) for cut in line.cuts(a.model))
        torch = ["pipeline", "--ranks", "2", "--schedule", line.schedule, "--cuts", cuts,
                 "--micro-batches", str(line.micro_batches)]
    frazil = ["--model", a.model, "--schedule", line.schedule, "--reduction", line.reduction,
              "--micro-batches", str(line.micro_batches)]
    return {"torch": [a.python, a.baseline, *torch, *shape, *common, *pin],
            "frazil": [a.program, *frazil, *common]}


def differences(model, line, pair):
    """Sides whose record says that they did other work, with what they did."""
    wanted = MODELS[model]
    places = PLACES[line.schedule]
    pipelines = [[0], [1]] if line.schedule == "replicas" else [places]
    per_rank = line.micro_batches // (2 if line.schedule == "replicas" else 1)
    expected = {
        "torch": {"cuts": line.cuts(model) or None, "micro_batches": per_rank, **wanted},
        "frazil": {"cuts": line.cuts(model), "micro_batches": line.micro_batches,
                   "devices": pipelines, "model": model,
                   "micro_batch_size": wanted["batch"] // line.micro_batches}}
    for side, fields in expected.items():
        record = pair[side]
        if "error" in record:
            continue
        for key, value in fields.items():
            if record.get(key) != value:
                yield side, f"{key} {record.get(key)}, expected {value}"


def measure_pair(a, line, number, draw):
    """{"line": ..., "order": ..., "torch": record, "frazil": record}."""
    order = ["torch", "frazil"]
    draw.shuffle(order)
    pair = {"line": str(line), **dataclasses.asdict(line), "pair": number, "order": order}
    both = commands(a, line, seed=number)
    for side in order:
        pair[side] = run_program(both[side], a.limit)
    for side, difference in differences(a.model, line, pair):
        pair[side].setdefault("error", difference)
    return pair


def measure_pairs(a, out):
    """The pairs of each line, measured in rounds."""
    draw = random.Random(a.seed)
    pairs = {line: [] for line in a.schedules}
    refused = set()
    for number in range(1, a.pairs + 1):
        for line in draw.sample(a.schedules, len(a.schedules)):
            if line in refused:
                continue
            pair = measure_pair(a, line, number, draw)
            pairs[line].append(pair)
            print(row(pair), flush=True)
            if out:
                out.write(json.dumps(pair) + "\n")
                out.flush()
            for side in pair["order"]:
                if "error" in pair[side]:
                    print(f"    {side}: {pair[side]['error']}\n{pair[side].get('stderr', '')}",
                          file=sys.stderr, flush=True)
            if pair["frazil"].get("exit_code") == REFUSED:
                refused.add(line)
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


HEADER = (f"{'line':<21}{'pair':>5}  {'first':<8}{'torch s':>9}{'frazil s':>9}{'ratio':>8}"
          f"{'others torch':>14}{'frazil':>8}   losses torch | frazil")


def row(pair):
    torch, frazil = pair["torch"], pair["frazil"]
    losses = " | ".join(
        " ".join(f"{loss:.3f}" for loss in record.get("losses", [])) or "failed"
        for record in (torch, frazil))
    return (f"{pair['line']:<21}{pair['pair']:>5}  {pair['order'][0]:<8}"
            f"{shown(torch.get('median_s'), '.3f'):>9}{shown(frazil.get('median_s'), '.3f'):>9}"
            f"{'failed' if failed(pair) else format(ratio(pair), '.3f'):>8}"
            f"{shown(torch.get('others'), '.2f'):>14}{shown(frazil.get('others'), '.2f'):>8}"
            f"   {losses}")


def summarize(line, what, ratios, seed):
    if not ratios:
        return f"{line}: {what}: no pair"
    low, high = interval(ratios, seed)
    few = "" if len(ratios) >= FEW_PAIRS else f" (too few pairs; take {FEW_PAIRS} or more)"
    return (f"{line}: {what}: median ratio {statistics.median(ratios):.3f}, "
            f"95 % interval {low:.3f} to {high:.3f}, n = {len(ratios)}{few}")


def cpu_of(record):
    seconds = record.get("cpu_s")
    return sum(seconds) if isinstance(seconds, list) else seconds


def describe_side(line, side, pairs):
    records = [pair[side] for pair in pairs]
    steps = [record["median_s"] for record in records]
    speed = statistics.median(record["samples_per_s"] for record in records)
    cpu = [cpu_of(record) for record in records if cpu_of(record) is not None]
    loads = [record["others"] for record in records if record.get("others") is not None]
    busy = (f"others median {statistics.median(loads):.2f}, most {max(loads):.2f}"
            if loads else "others unknown")
    return (f"{line}: {side}: step {statistics.median(steps):.3f} s "
            f"({min(steps):.3f} to {max(steps):.3f}), {speed:.1f} samples/s, "
            f"{shown(statistics.median(cpu) if cpu else None, '.3f')} CPU s, {busy}")


def report(a, line, pairs):
    good = [pair for pair in pairs if not failed(pair)]
    lines = [summarize(line, "all pairs", [ratio(p) for p in good], a.seed)]
    if good:
        lines.append(summarize(line, f"others <= {a.quiet:g} in both runs",
                               [ratio(p) for p in good if is_quiet(p, a.quiet)], a.seed))
        lines += [describe_side(line, side, good) for side in ("torch", "frazil")]
    if len(good) < len(pairs):
        causes = {f"{side}: {pair[side]['error']}" for pair in pairs for side in ("torch", "frazil")
                  if "error" in pair[side]}
        lines.append(f"{line}: {len(pairs) - len(good)} of {len(pairs)} pairs failed: "
                     + "; ".join(sorted(causes)))
    return "\n".join(lines)


def read_line(entry, reduction, a):
    """`zbv:4` under a reduction mode; raises ValueError with what is wrong."""
    name, colon, number = entry.partition(":")
    if name not in PLACES:
        raise ValueError(f"{entry}: one of {', '.join(PLACES)}, each with :MICRO-BATCHES if wanted")
    if colon and not number.isdecimal():
        raise ValueError(f"{entry}: a number of micro-batches after the colon")
    micro_batches = int(number) if colon else a.micro_batches
    batch = MODELS[a.model]["batch"]
    if micro_batches < 1 or batch % micro_batches:
        raise ValueError(f"{entry}: {micro_batches} micro-batches of a batch of {batch}")
    if name == "replicas" and micro_batches % 2:
        raise ValueError(f"{entry}: an even number of micro-batches")
    return Line(name, micro_batches, reduction)


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    default = pathlib.Path(__file__).resolve().parents[2] / "build/bin/bench_pipeline_steps"
    p.add_argument("--baseline", required=True, help="the stock PyTorch program")
    p.add_argument("--python", default=sys.executable,
                   help="a Python that can import torch (default: this one)")
    p.add_argument("--program", default=str(default), help="default: %(default)s")
    p.add_argument("--model", choices=list(MODELS), default="tiny", help="default %(default)s")
    p.add_argument("--schedules", default=SCHEDULES, help="a comma list, default: %(default)s")
    p.add_argument("--reduction", default="exact",
                   help="Frazil's mode, exact, fast or both with a comma; default %(default)s")
    p.add_argument("--pairs", type=int, default=10, help="per line, default %(default)s")
    p.add_argument("--micro-batches", type=int, default=8,
                   help="of a step, where a line has none of its own, default %(default)s")
    p.add_argument("--steps", type=int, default=12,
                   help="of each run, warm-up included, default %(default)s")
    p.add_argument("--warmup", type=int, default=3, help="default %(default)s")
    p.add_argument("--pin", action="store_true",
                   help="let the baseline pin its ranks to cores, as Frazil always does")
    p.add_argument("--seed", type=int, default=1, help="of the orders and the bootstrap")
    p.add_argument("--quiet", type=float, default=0.3,
                   help="cores of others up to which a run counts as undisturbed, default %(default)s")
    p.add_argument("--limit", type=float, default=600, help="seconds for one run")
    p.add_argument("--out", help="all records as JSON lines, one pair each, as they come")
    a = p.parse_args(argv)
    if not set(a.reduction.split(",")) <= {"exact", "fast"}:
        p.error("--reduction: exact, fast or both with a comma")
    try:
        a.schedules = list(dict.fromkeys(read_line(entry, reduction, a) for entry in a.schedules.split(",")
                                     for reduction in a.reduction.split(",")))
    except ValueError as error:
        p.error(f"--schedules {error}")
    if a.pairs < 1 or not 0 <= a.warmup < a.steps:
        p.error("at least one pair, and more steps than warm-up")
    return a


def main():
    a = parse(sys.argv[1:])
    try:
        out = open(a.out, "w") if a.out else None
    except OSError as error:
        print(f"--out {a.out}: {error.strerror}", file=sys.stderr)
        return 2
    print(f"{a.model}: {MODELS[a.model]}, {a.steps - a.warmup} timed steps of each run")
    print(HEADER)
    pairs = measure_pairs(a, out)
    print()
    for line in a.schedules:
        print(report(a, line, pairs[line]))
    return 1 if any(failed(p) for some in pairs.values() for p in some) else 0


if __name__ == "__main__":
    sys.exit(main())
