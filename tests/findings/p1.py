#!/usr/bin/env python3
# A backward measured as one number counts whole: on one device, an imported model takes the sum
# of its file, to the nanosecond, whatever its first layers are.
"""Imports tables of layers and PipeDream's graphs through the verbs and simulates them on one
device: every public graph (folder PIPEDREAM_GRAPHS, else data/pipedream of the shared folder beside
the tree) and random graphs with several first layers, layers without parameters and layers that no
loss reaches. The time of a step is compared with the sum of the file, added up here in decimals."""

import decimal
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", TREE / "build/bin/frazil"))
GRAPHS = [pathlib.Path(os.environ.get("PIPEDREAM_GRAPHS", TREE.parent / "shared/data/pipedream"))]
SEED = int(os.environ.get("SEED", "1"))
RANDOM_GRAPHS = 40


def run(folder, *words):
    done = subprocess.run([FRAZIL, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"frazil {' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def time_of(folder, kind, file):
    """The makespan of the only plan on one device, by plan and by simulate."""
    run(folder, "import", kind, str(file), "--out", "model.json")
    plan = json.loads(run(folder, "plan", "--profile", "model.json", "--cluster", "one.json",
                          "--batch", "1", "--micro-batch", "1", "--schedules", "gpipe",
                          "--no-recompute", "--out", "plan.json", "--json"))
    answer = json.loads(run(folder, "simulate", "--plan", "plan.json", "--profile", "model.json",
                            "--cluster", "one.json", "--json"))
    planned = plan["feasible"][0]["makespan_ns"]
    return planned if planned == answer["makespan_ns"] else (planned, answer["makespan_ns"])


def nanoseconds(milliseconds):
    """A time in ms as whole ns, halves up, as the readers round."""
    return int((decimal.Decimal(milliseconds) * 1_000_000).to_integral_value(
        rounding=decimal.ROUND_HALF_UP))


def sum_of_graph(text):
    """The forward and backward of all nodes but those that load the data."""
    read = {line.split(" -- ")[1].strip() for line in text.splitlines() if line.startswith("\t")}
    total = 0
    for line in text.splitlines():
        if line.startswith("\t") or not line.strip():
            continue
        node, description = line.split(" -- ")[:2]
        if node not in read and re.fullmatch(r"Input\d*", description):
            continue
        total += sum(nanoseconds(time) for time in re.findall(r"(?:forward|backward)_compute_time=([0-9.]+)",
                                                              line))
    return total


def random_graph(draw):
    count = draw.randint(2, 14)
    lines = []
    for n in range(count):
        parameters = draw.choice([0, 0, 64])
        if n == count - 1:
            parameters = 64
        name = "__getitem__(0)" if draw.random() < 0.15 and n < count - 1 else "Layer"
        lines.append(f"node{n} -- {name} -- forward_compute_time={draw.randint(0, 9999) / 1000}, "
                     f"backward_compute_time={draw.randint(0, 9999) / 1000}, "
                     f"activation_size={draw.randint(0, 99)}.0, parameter_size={parameters}.0")
    for to in range(1, count):
        for start in range(to):
            if draw.random() < 1.4 / count:
                lines.append(f"\tnode{start} -- node{to}")
    draw.shuffle(lines)
    return "\n".join(lines) + "\n"


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "one.json").write_text(json.dumps(
            {"format": "frazil.cluster", "version": 1,
             "hosts": [{"name": "h", "memory_bytes": 0}],
             "devices": [{"name": "d", "host": "h", "memory_limit_bytes": 2**50}],
             "default_link": {"latency_ns": 0, "bandwidth_bytes_per_second": 1}}))
        wrong = []
        head = "name,forward_ms,backward_ms,activation_bytes,parameter_bytes\n"
        tables = {"two layers": ("a,1,2,8,64\nb,1,2,8,64\n", 6_000_000),
                  "first without parameters": ("a,1,2,8,0\nb,1,2,8,64\n", 6_000_000),
                  "two first without parameters": ("a,1,2,8,0\nb,1,3,8,0\nc,1,2,8,64\n", 10_000_000),
                  "odd nanoseconds": ("a,0,0.000001,8,64\nb,0,0.000003,8,64\n", 4)}
        for title, (rows, expected) in tables.items():
            (folder / "layers.csv").write_text(head + rows)
            seen = time_of(folder, "csv", "layers.csv")
            if seen != expected:
                wrong.append(f"{title}: {seen} ns instead of {expected}")
        graphs = next((sorted(place.glob("*.graph.txt")) for place in GRAPHS if place.is_dir()), [])
        for graph in graphs:
            expected = sum_of_graph(graph.read_text())
            seen = time_of(folder, "pipedream", graph)
            if seen != expected:
                wrong.append(f"{graph.name}: {seen} ns instead of {expected}")
        draw = random.Random(SEED)
        for number in range(RANDOM_GRAPHS):
            text = random_graph(draw)
            (folder / "graph.txt").write_text(text)
            expected = sum_of_graph(text)
            seen = time_of(folder, "pipedream", "graph.txt")
            if seen != expected:
                wrong.append(f"random graph {number} of seed {SEED}: {seen} ns instead of {expected}")
        cases = len(tables) + len(graphs) + RANDOM_GRAPHS
        if wrong:
            print(f"{len(wrong)} of {cases} imported models lose backward, as " +
                  "; ".join(wrong[:6]))
            return 1
        print(f"one device takes the sum of the file in {cases} of {cases} models "
              f"({len(graphs)} public graphs, {RANDOM_GRAPHS} random of seed {SEED})")
        if not graphs:
            print("the public graphs are absent")
            return 77
        return 0


sys.exit(main())
