#!/usr/bin/env python3
"""Simulated steps of Frazil in Holistic Trace Analysis (HTA), which knows nothing of simulations.

    .deps/torch-python/python tests/interop/check_hta.py \\
        --frazil build/bin/frazil --writer build/bin/write_kernel_traces

Each device of a time line is written as the trace of one rank, and HTA analyses the folder. Its
temporal breakdown (idle, compute, other), its overlap of communication with computation and its
idle time by stream and cause must be those that follow from the time line's CSV, where they are
computed here span by span, and from what `frazil simulate --json` says.

HTA rounds traces in ns to whole us, a span's start up and its end down. What it answers is compared
exactly with what this rule makes of the CSV; that is less than 2 us per span off. It is compared
again with its rounding switched off, then to 1 ns. Time lines of whole us need neither.
Exit code 0 means that all of it holds.
"""

import argparse
import collections
import csv
import itertools
import json
import logging
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore", category=FutureWarning)
warnings.filterwarnings("ignore", "invalid value encountered in scalar divide")  # no messages

from hta.trace_analysis import TraceAnalysis  # noqa: E402

FIRST_STREAM = 7  # that of the compute lane
LANES = ["compute", "send", "receive", "collective"]
KERNEL_DELAY = 30  # us: shorter pauses are HTA's "kernel wait"

Span = collections.namedtuple("Span", "device lane step start end launch")


class Programs:
    def __init__(self, frazil, writer, folder):
        self.frazil, self.writer, self.folder = frazil, writer, pathlib.Path(folder)

    def run(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder)
        assert done.returncode == 0, f"{command}: exit code {done.returncode}: {done.stderr}"
        return done.stdout

    def simulate(self, *flags):
        """(the answer, the CSV)"""
        answer = self.run(self.frazil, "simulate", *flags, "--json", "--out", "timeline.csv")
        return json.loads(answer), (self.folder / "timeline.csv").read_text()


# ------------------------------------------------- what the CSV says

def read_timeline(text):
    """The device's own spans, by device, in us; without those of the host lane."""
    rows = list(csv.DictReader(text.splitlines()[1:]))
    begins = {}
    for row in rows:
        key = row["device"], row["step"]
        begins[key] = min(begins.get(key, math.inf), int(row["start_ns"]))
    spans, last = collections.defaultdict(list), {}
    for row in rows:
        device, lane, step = row["device"], row["lane"], row["step"]
        if lane == "host":
            continue
        start, length = int(row["start_ns"]), int(row["end_ns"]) - int(row["start_ns"])
        # As the trace says it: one action ahead, within the step.
        launch = last.get((device, lane, step), begins[device, step])
        last[device, lane, step] = start
        spans[int(device)].append(Span(int(device), lane, int(step), start / 1000,
                                       start / 1000 + length / 1000, launch / 1000))
    return spans


def round_as_hta(span):
    return span._replace(start=math.ceil(span.start), end=math.floor(span.end),
                         launch=math.ceil(span.launch))


def covered(spans):
    """Disjoint intervals: when any of the spans runs."""
    intervals = []
    for span in sorted(spans, key=lambda span: span.start):
        assert span.end >= span.start, f"{span} is shorter than HTA can see"
        if intervals and span.start <= intervals[-1][1]:
            intervals[-1][1] = max(intervals[-1][1], span.end)
        else:
            intervals.append([span.start, span.end])
    return intervals


def length(intervals):
    return sum(end - start for start, end in intervals)


def overlap(ones, others):
    return sum(max(0, min(a[1], b[1]) - max(a[0], b[0]))
               for a, b in itertools.product(ones, others))


def break_down(spans):
    """(idle, compute, other, from the first start to the last end)"""
    total = max(span.end for span in spans) - min(span.start for span in spans)
    idle = total - length(covered(spans))
    compute = length(covered([span for span in spans if span.lane == "compute"]))
    return idle, compute, total - idle - compute, total


def find_overlap(spans):
    """Percent of the communication during which the device computes; None without any."""
    compute = covered([span for span in spans if span.lane == "compute"])
    communication = covered([span for span in spans if span.lane != "compute"])
    if length(communication) == 0:
        return None
    return 100 * overlap(compute, communication) / length(communication)


def explain_pauses(spans):
    """{(stream, cause): the pauses between the spans of one stream}"""
    pauses = collections.Counter()
    for lane in LANES:
        ordered = sorted((span for span in spans if span.lane == lane), key=lambda s: s.start)
        for before, span in itertools.pairwise(ordered):
            cause = "other"
            if span.launch > before.end:
                cause = "host_wait"
            elif span.start - before.end < KERNEL_DELAY:
                cause = "kernel_wait"
            pauses[FIRST_STREAM + LANES.index(lane), cause] += span.start - before.end
    return pauses


# ------------------------------------------------- what HTA says

class Analysis:
    def __init__(self, folder, rounds, includes_last_step):
        os.environ["HTA_DISABLE_NS_ROUNDING"] = "0" if rounds else "1"
        self.analysis = TraceAnalysis(trace_dir=str(folder),
                                      include_last_profiler_step=includes_last_step)

    def break_down(self):
        columns = ["idle_time(us)", "compute_time(us)", "non_compute_time(us)", "kernel_time(us)"]
        table = self.analysis.get_temporal_breakdown(visualize=False)
        return {row["rank"]: tuple(row[column] for column in columns)
                for _, row in table.iterrows()}

    def find_overlap(self):
        table = self.analysis.get_comm_comp_overlap(visualize=False)
        return {row["rank"]: row["comp_comm_overlap_pctg"] for _, row in table.iterrows()}

    def explain_pauses(self, rank):
        table, _ = self.analysis.get_idle_time_breakdown(
            ranks=[rank], visualize=False, consecutive_kernel_delay=KERNEL_DELAY)
        return collections.Counter({(row["stream"], row["idle_category"]): row["idle_time"]
                                    for _, row in table.iterrows()})


def expect_close(found, expected, allowed, what):
    assert len(found) == len(expected), f"{what}: {found}, not {expected}"
    for one, other in zip(found, expected):
        assert abs(one - other) <= allowed, f"{what}: {found}, not {expected}"


def compare(analysis, timeline, allowed):
    """`allowed`: us per span."""
    broken_down, overlaps = analysis.break_down(), analysis.find_overlap()
    assert sorted(broken_down) == sorted(timeline), f"ranks {sorted(broken_down)}"
    for device, spans in timeline.items():
        most = allowed * len(spans)
        what = f"device {device}"
        expect_close(broken_down[device], break_down(spans), most, what)
        expected = find_overlap(spans)
        if expected is None:
            assert math.isnan(overlaps[device]), f"{what}: an overlap of {overlaps[device]}"
        else:
            expect_close([overlaps[device]], [expected], 0.006, what + ", overlap")
        found, pauses = analysis.explain_pauses(device), explain_pauses(spans)
        for key in set(found) | set(pauses):  # rounded to 2 decimals by HTA
            expect_close([found[key]], [pauses[key]], most + 0.006, f"{what}, {key}")
    return broken_down


def check(programs, title, text, steps=1):
    """Returns the timeline, in us."""
    csv_path = programs.folder / f"{title}.csv"
    csv_path.write_text(text)
    folder = programs.folder / title
    programs.run(programs.writer, csv_path, folder)
    # HTA leaves out the last one of several steps unless told otherwise.
    for includes_last in [False] if steps == 1 else [False, True]:
        last = steps - 1 if includes_last or steps == 1 else steps - 2
        exact = {device: [span for span in spans if span.step <= last]
                 for device, spans in read_timeline(text).items()}
        rounded = {device: [round_as_hta(span) for span in spans]
                   for device, spans in exact.items()}
        found = compare(Analysis(folder, True, includes_last), rounded, 0)
        compare(Analysis(folder, False, includes_last), exact, 0.001)
        for device, spans in exact.items():
            expect_close(found[device], break_down(spans), 2 * len(spans), f"{title}, rounding")
    idle, compute, other, total = (sum(column) for column in zip(*map(break_down, exact.values())))
    print(f"{title}: {len(exact)} devices, {sum(map(len, exact.values()))} spans, idle "
          f"{idle / total:.2%}, compute {compute / total:.2%}, other {other / total:.2%}",
          flush=True)
    return exact


def check_what_if(programs, title, schedule, devices, *flags):
    answer, text = programs.simulate("--schedule", schedule, "--stages", str(devices), "--explain",
                                     *flags)
    timeline = check(programs, title, text)
    for device, said in enumerate(answer["idle_time"]["devices"]):
        _, compute, _, _ = break_down(timeline[device])
        expect_close([1000 * compute], [said["compute_ns"]], 1, f"{title}, device {device}")
    compute = sum(break_down(spans)[1] for spans in timeline.values())
    bubble = 1 - 1000 * compute / (devices * answer["makespan_ns"])
    expect_close([bubble], [answer["bubble"]], 1e-9, f"{title}, bubble")


# ------------------------------------------------- a plan with messages and reductions

LAYERS, DEVICES = 6, 4


def make_profile():
    layers = []
    for layer in range(LAYERS):
        time = 123_457 + 11_111 * layer
        layers.append({
            "name": f"layer {layer}", "block": layer, "has_loss": layer + 1 == LAYERS,
            "parameter_bytes": 400_000, "optimizer_state_bytes": 0, "update_ns": 7_531,
            "costs": [{"micro_batch_size": 1, "forward_ns": time, "forward_frozen_ns": time,
                       "backward_input_ns": time + 1_001, "backward_weight_ns": time + 999,
                       "backward_weight_alone_ns": time + 999, "stash_bytes": 0}]})
    return {"format": "frazil.model", "version": 1, "model": "chain", "provenance": {},
            "backward_was_split_by_rule": False, "input_bytes_per_sample": 8,
            "blocks": [layer["name"] for layer in layers], "layers": layers,
            "edges": [{"from": layer, "to": layer + 1, "kind": "gradient",
                       "tensor_bytes_per_sample": [100_001]} for layer in range(LAYERS - 1)],
            "tied": []}


def make_cluster():
    devices = [{"name": f"gpu{device}", "host": "here", "memory_limit_bytes": 1 << 30,
                "time_ppm": 1_000_000, "action_overhead_ns": 0, "step_overhead_ns": 5_003}
               for device in range(DEVICES)]
    return {"format": "frazil.cluster", "version": 1, "provenance": {},
            "hosts": [{"name": "here", "memory_bytes": 1 << 40}], "devices": devices,
            "default_link": {"latency_ns": 3_017, "bandwidth_bytes_per_second": 1_000_000_007},
            "links": []}


def make_plan(programs):
    """Two pipelines of two stages, whose owners add their gradients up."""
    (programs.folder / "profile.json").write_text(json.dumps(make_profile()))
    (programs.folder / "cluster.json").write_text(json.dumps(make_cluster()))
    programs.run(programs.frazil, "plan", "--profile", "profile.json", "--cluster", "cluster.json",
                 "--batch", "8", "--micro-batch", "1", "--out", "plan.json")
    plan = json.loads((programs.folder / "plan.json").read_text())
    plan["pipelines"] = [{"stages": [{"layers": [[0, 2]], "devices": [first], "axis": "data",
                                      "memory": "keep"},
                                     {"layers": [[3, 5]], "devices": [first + 1], "axis": "data",
                                      "memory": "keep"}],
                          "micro_batches": [[2 * first, 2 * first + 3]]} for first in (0, 2)]
    plan["schedule"] = {"name": "1f1b", "in_flight": 2, "chunks": 1}
    (programs.folder / "plan.json").write_text(json.dumps(plan))


def check_export(programs):
    """The verb writes the traces that were checked, one for each device with work."""
    programs.run(programs.frazil, "export", "--to", "chrome", "--per-device", "--out", "rank.json",
                 "--plan", "plan.json", "--profile", "profile.json", "--cluster", "cluster.json")
    written = {path.name: path.read_bytes() for path in programs.folder.glob("rank.*.json")}
    checked = {path.name.replace("rank", "rank."): path.read_bytes()
               for path in (programs.folder / "plan").glob("rank*.json")}
    assert written == checked, f"export wrote {sorted(written)}, checked were {sorted(checked)}"


def repeat(text, times, pause):
    """The same step, so many ns after the end of the one before."""
    title, header, *lines = text.splitlines()
    rows = [line.split(",") for line in lines]
    length = max(int(row[5]) for row in rows) + pause
    repeated = [",".join(row[:2] + [str(step), row[3], str(int(row[4]) + step * length),
                                    str(int(row[5]) + step * length)])
                for step in range(times) for row in rows]
    return "\n".join([title, header] + repeated) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--frazil", required=True, help="the front door")
    p.add_argument("--writer", required=True, help="write_kernel_traces")
    a = p.parse_args()
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(os.path.abspath(a.frazil), os.path.abspath(a.writer), folder)
        check_what_if(programs, "whole-us", "1f1b", 4, "--micro-batches", "8", "--forward", "1ms",
                      "--backward-input", "1ms", "--backward-weight", "1ms", "--hop", "0.313ms")
        check_what_if(programs, "odd-ns", "zb-h1", 3, "--micro-batches", "5", "--forward",
                      "1234567ns", "--backward-input", "1300001ns", "--backward-weight", "999999ns",
                      "--hop", "31337ns")
        make_plan(programs)
        _, text = programs.simulate("--plan", "plan.json", "--profile", "profile.json", "--cluster",
                                    "cluster.json")
        lanes = {line.split(",")[1] for line in text.splitlines()[2:]}
        assert {"compute", "send", "collective"} <= lanes, f"only {lanes} in the plan's time line"
        check(programs, "plan", text)
        check_export(programs)
        check(programs, "three-steps", repeat(text, 3, 250_125), steps=3)
    print("all of it holds")


if __name__ == "__main__":
    sys.exit(main())
