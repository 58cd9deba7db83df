"""Folders of training runs for `report` to read: run-a has ended, run-b was interrupted in its second phase."""

import csv
import json
import shutil

from model_files import MIB

PHASES = [(0, "1f1b", "1" * 12), (20, "two-by-two", "0" * 4 + "1" * 8)]  # step, plan, mask
KINDS_OF_MEMORY = ["parameters", "gradients", "optimizer", "stash", "receive", "cache"]


def measure_by_hand(predicted, steps):
    """A measured time line: the predicted step at each of these, every time 8 % longer."""
    first, header, *rows = predicted.splitlines()
    lines = [first, header]
    for step in steps:
        for row in csv.reader(rows):
            start, end = (step * 1_000_000_000 + int(at) * 108 // 100 for at in row[4:])
            lines.append(",".join([*row[:2], str(step), row[3], str(start), str(end)]))
    return "\n".join(lines) + "\n"


def make_held_memory(scale, **others):
    sizes = {f"{kind}_bytes": scale * 1000 * (k + 1) for k, kind in enumerate(KINDS_OF_MEMORY)}
    peak = sum(sizes.values())
    curve = [[0, peak // 2], [1_000_003, peak], [2_000_003, peak // 3]]
    return {"peak_bytes": peak, **sizes, **others, "curve": curve}


def make_memory(step, devices):
    return {
        "format": "frazil.memory", "version": 1, "step": step, "process_peak_resident_bytes": 91_234_304,
        "devices": [
            {
                "name": f"device{number}", "limit_bytes": 64 * MIB, "predicted": make_held_memory(100 + number),
                "measured": make_held_memory(110 + number, allocator_peak_bytes=2_000_000),
            }
            for number in range(devices)
        ],
    }


def make_transition(step):
    measured = {"plan_time_ns": 3_000_000, "move_time_ns": 2_000_000, "start_time_ns": 1_000_000, "moved_bytes": 4096}
    predicted = {"plan_time_ns": 2_500_000, "move_time_ns": 2_100_000, "start_time_ns": 900_000}
    return {"step": step, "kind": "transition", **measured, **{f"predicted_{key}": t for key, t in predicted.items()}}


def make_steps(first, log):
    """20 steps: a log tells each and a checkpoint, a trace what they cost together."""
    if not log:
        return [{"step": first, "kind": "cost", "steps": 20, "samples": 640, "measured_ns": 640_000_031}]
    step = {"kind": "step", "loss": 1.25, "samples": 32, "time_ns": 31_000_007}
    steps = [{"step": number, **step} for number in range(first, first + 20)]
    return [*steps, {"step": first + 20, "kind": "checkpoint", "time_ns": 8_000_009}]


def make_phase_events(number, first, plan, mask, log):
    told_plan = {"plan": f"phase-{number}/plan.json", "summary": f"the plan {plan}"}
    scores = {"train_loss": 1.5 - number / 2, "loss": 1.75 - number / 2, "accuracy": 0.5}
    return [
        {"step": first, "kind": "mask", "mask": mask, "by": "alpha", "reason": "Due."},
        {"step": first, "kind": "plan", **told_plan, "predicted_step_ns": 30_000_000 - first * 500_000},
        *([make_transition(first)] if number > 0 else []),
        *make_steps(first, log),
        {"step": first + 20, "kind": "eval", "epoch": number + 1, **scores},
    ]


def make_record(log):
    """The trace of a run, or its log as it was still being written."""
    events = [event for number, phase in enumerate(PHASES) for event in make_phase_events(number, *phase, log)]
    header = {
        "format": "frazil.freeze_trace", "version": 1, "model_hash": "0123456789abcdef",
        "blocks": [f"block{number}" for number in range(12)],
        "steps": 40, "batch_size": 32, "provenance": {"host": "one of two", "seed": "7"},
        **({"open": True} if log else {"events": len(events)}),
    }
    return "".join(json.dumps(line) + "\n" for line in [header, *events])


def write_phase(inputs, place, plan, step, measured):
    inputs.write(f"{place}/plan.json", inputs.read(f"plan-{plan}.json"))
    files = f"--plan plan-{plan}.json --profile chain.json --cluster four.json"
    inputs.make(f"simulate {files} --out {place}/predicted.csv")
    if measured:
        predicted = inputs.read(f"{place}/predicted.csv")
        inputs.write(f"{place}/measured.csv", measure_by_hand(predicted, [step, step + 10]))
        inputs.write(f"{place}/memory.json", make_memory(step + 1, 4))


def write_run_folders(inputs):
    for number, (step, plan, _) in enumerate(PHASES):
        write_phase(inputs, f"run-a/phase-{number}", plan, step, measured=True)
        write_phase(inputs, f"run-b/phase-{number}", plan, step, measured=number == 0)
    inputs.write("run-a/trace.jsonl", make_record(log=False))
    inputs.write("run-b/events.jsonl", make_record(log=True) + '{"step":4')
    inputs.write("line.csv", inputs.read("run-a/phase-0/predicted.csv"))
    inputs.write("measured.csv", inputs.read("run-a/phase-0/measured.csv"))


def write_broken_run_folder(inputs):
    """run-c, like run-a but for a memory.json with an unknown key."""
    shutil.copytree(inputs.path("run-a"), inputs.path("run-c"))
    inputs.write("run-c/phase-0/memory.json", inputs.read("broken/memory-unknown-key.json"))
