#!/usr/bin/env python3
# A stored good day shows which layer, link or host has moved since, of traces and of plans, stays quiet where nothing has, and says why it cannot tell.
"""Guards synthetic traces of a PyTorch job, whose parts are slowed, and a small plan on this machine with a planted slow layer."""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from kineto_steps import Trace  # noqa: E402
from training import Absent, Training  # noqa: E402

FRAZIL = os.path.abspath(os.environ.get("FRAZIL", pathlib.Path(__file__).resolve().parents[2] / "build/bin/frazil"))
LAYERS = ["tok_embeddings", "layers.0", "layers.1", "layers.2", "layers.3", "output"]


def trace_of_day(seed, noise=0.01, steps=21, host=1.0, slow=None, factor=1.0, link=1.0, late_noise=None, early=1.0, slow_from=0):
    """A trace of a GPU job; each time scatters by `noise`, or in its second half by `late_noise`, and `slow` is the layer that
    takes `factor`, from step `slow_from` on. In the first half all takes `early`, too. Without `link` nothing is communicated."""
    draws, trace = random.Random(seed), Trace()

    def took(time):
        return round(time * max(0.1, draws.gauss(1, now)), 3)

    for step in range(steps):
        now = late_noise if late_noise and 2 * step > steps else noise
        pace = host * (early if 2 * step < steps else 1)
        at, number, correlation = 100_000 * (step + 1), 100 * step, 1000 * step
        trace.event("user_annotation", f"ProfilerStep#{step}", at, took(30_000 * pace))
        for place, layer in enumerate(LAYERS):
            begin = at + 1000 * place
            mine = (200 + 100 * place) * pace * (factor if layer == slow and step >= slow_from else 1)
            trace.event("user_annotation", f"layer:{layer}", begin, 900)
            trace.event("cpu_op", "aten::linear", begin + 10, 800, **{"Sequence number": number + place, "Fwd thread id": 0})
            launch(trace, begin + 20, correlation + place, "gemm", begin + 50, took(mine))
            back = at + 10_000 + 1000 * (len(LAYERS) - place)
            trace.backward("AddmmBackward0", back, 900, number + place)
            launch(trace, back + 20, correlation + 100 + place, "gemm", back + 50, took(2 * mine))
        if link:
            launch(trace, at + 20_000, correlation + 200, "ncclDevKernel_AllReduce_Sum_f32", at + 20_050, took(3000 * link))
    return trace.text()


def launch(trace, at, correlation, kernel, start, duration):
    trace.event("cuda_runtime", "cudaLaunchKernel", at, 1, correlation=correlation)
    trace.events.append({"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": start, "dur": duration,
                         "args": {"External id": 0, "correlation": correlation, "grid": [1, 1, 1]}})


class Folder:
    def __init__(self, name):
        self.path = pathlib.Path(name)

    def run(self, *arguments):
        return subprocess.run([FRAZIL, "verify", *arguments], cwd=self.path, capture_output=True, text=True, timeout=300)

    def guard(self, trace, *more):
        (self.path / "trace.json").write_text(trace)
        return self.run("--trace", "trace.json", "--baseline", "good.json", "--json", *more)

    def store(self, trace, *more):
        (self.path / "trace.json").write_text(trace)
        return self.run("--trace", "trace.json", "--write-baseline", "good.json", "--json", *more)


DAYS = (  # what is slowed, and the alarms that must be told: kind and name
    ({}, set()),
    ({"noise": 0.03}, set()),
    ({"slow": "layers.2", "factor": 1.15}, {("layer", "layer:layers.2")}),
    ({"slow": "tok_embeddings", "factor": 1.5}, {("layer", "layer:tok_embeddings")}),
    ({"host": 1.1}, {("host", "host")}),
    ({"link": 1.4}, {("link", "communication")}),
    ({"host": 0.9}, set()),
    ({"slow": "layers.2", "factor": 1.02}, set()),
)


def check_traces(folder):
    few = folder.store(trace_of_day(1, steps=6))
    if few.returncode != 5 or (folder.path / "good.json").exists():
        return f"five steps as a good day end with {few.returncode}, expected 5 and no baseline"
    if json.loads(few.stdout)["reason"] != "only 5 steps count, 6 are needed":
        return f"five steps as a good day have no reason: {few.stdout}"
    absent = folder.guard(trace_of_day(1))
    if absent.returncode != 2 or "good.json" not in absent.stderr or (folder.path / "good.json").exists():
        return f"a baseline that is not there ends with {absent.returncode}: {absent.stderr.strip()}"
    stored = folder.store(trace_of_day(1))
    if stored.returncode or not json.loads(stored.stdout).get("wrote_baseline"):
        return f"storing a baseline ends with {stored.returncode}: {stored.stderr.strip()}"
    kept = (folder.path / "good.json").read_bytes()
    for place, (slowed, expected) in enumerate(DAYS):
        for seed in range(10, 15):
            done = folder.guard(trace_of_day(100 * place + seed, **slowed))
            code = 4 if expected else 0
            alarms = {(alarm["kind"], alarm["name"]) for alarm in json.loads(done.stdout)["alarms"]} if done.stdout else None
            if done.returncode != code or alarms != expected:
                return f"a day with {slowed} ends with {done.returncode} and alarms {alarms}, expected {code} and {expected}: {done.stderr.strip()}"
    for name, trace, words in (("three steps", trace_of_day(3, steps=4), "only 3 steps count, 6 are needed"),
                               ("an unsteady second half", trace_of_day(4, late_noise=0.4), "scatters by"),
                               ("a day without communication", trace_of_day(5, link=0), "not measured today: link communication")):
        done = folder.guard(trace)
        reason = json.loads(done.stdout)["reason"] if done.stdout else None
        if done.returncode != 5 or words not in (reason or ""):
            return f"{name} ends with {done.returncode}, reason {reason}, expected 5 and `{words}`: {done.stderr.strip()}"
        told = folder.run("--trace", "trace.json", "--baseline", "good.json").stdout.splitlines()[-1]
        if told != f"INCONCLUSIVE: {reason}":
            return f"{name} is told to people as `{told}`"
    missing = json.loads(folder.guard(trace_of_day(5, link=0)).stdout)["missing"]
    if missing != [{"kind": "link", "name": "communication"}]:
        return f"of a day without communication is missing {missing}"
    if (folder.path / "good.json").read_bytes() != kept:
        return "comparing changed the baseline"
    taken = folder.store(trace_of_day(2))
    if taken.returncode != 2 or "--force" not in taken.stderr or (folder.path / "good.json").read_bytes() != kept:
        return f"a good day in the place of another ends with {taken.returncode}: {taken.stderr.strip()}"
    forced = folder.store(trace_of_day(2), "--force")
    if forced.returncode or (folder.path / "good.json").read_bytes() == kept:
        return f"--force ends with {forced.returncode} and changes nothing: {forced.stderr.strip()}"
    for flags in ("--baseline good.json --force", "--baseline good.json --write-baseline other.json", "--write-baseline other.json --bar 3"):
        done = folder.run("--trace", "trace.json", *flags.split())
        if done.returncode != 2 or (folder.path / "other.json").exists():
            return f"`{flags}` ends with {done.returncode}: {done.stderr.strip()}"
    return ""


def check_consistency(folder):
    """Table, sentences, JSON and verdict say the same, and what a good day may be is judged as a later day is."""
    stored = folder.store(trace_of_day(1), "--force")
    if stored.returncode:
        return f"storing a baseline ends with {stored.returncode}: {stored.stderr.strip()}"
    days = (  # a slower first half; a slow layer amid noise; a layer that is slow in the second half alone, without noise
        ("a host that recovers", trace_of_day(30, host=1.07, early=1.04), 4, "the host: half of its layers or more take at least "),
        ("a slow layer amid noise", trace_of_day(31, noise=0.3, slow="layers.2", factor=3.0), 5, "not confirmed: "),
        ("a layer that slows on the way", trace_of_day(32, noise=0, slow="layers.2", factor=1.04, slow_from=7), 0, "not confirmed: layer layer:layers.2: "),
    )
    for name, trace, code, sentence in days:
        done = folder.guard(trace)
        answer = json.loads(done.stdout)
        text = folder.run("--trace", "trace.json", "--baseline", "good.json").stdout
        if done.returncode != code or (code != 4 and answer["alarms"]):
            return f"{name} ends with {done.returncode}, alarms {answer['alarms']}, expected {code}: {answer['reason']}"
        told = answer["alarms"] + answer["unconfirmed"]
        moved = {(row["kind"], row["name"]): row for row in answer["movements"]}
        for row in told:
            known = {key: value for key, value in row.items() if key != "reason"}
            if known != moved[row["kind"], row["name"]]:
                return f"{name}: {row} is told, though {moved[row['kind'], row['name']]} was measured"
            if f"{100 * (row['own_ratio'] - 1):.1f} % longer" not in text:
                return f"{name}: no sentence has the ratio {row['own_ratio']} of {row['name']}: {text}"
        untold = {key for key, row in moved.items() if row["moved"] == "slower"} - {(row["kind"], row["name"]) for row in told} - {("step", "step")}
        if untold or sentence not in text:
            return f"{name}: `{sentence}` or {untold} is untold: {text}"
    wide = folder.run(*"--trace trace.json --baseline good.json --bar 150".split())
    if wide.returncode or "too unsteady" in wide.stdout:
        return f"a bar of 150 % is told as noise: {wide.stdout}"
    refused = 0
    for seed, noises in enumerate(((0.01, 0.3), (0.01, 0.01), (0.09, 0.13), (0.1, None), (0.12, 0.1), (0.15, None))):
        (folder.path / "own.json").unlink(missing_ok=True)
        (folder.path / "trace.json").write_text(trace_of_day(40 + seed, noise=noises[0], late_noise=noises[1]))
        stored = folder.run(*"--trace trace.json --write-baseline own.json --json".split())
        if stored.returncode == 5 and not (folder.path / "own.json").exists() and json.loads(stored.stdout)["reason"]:
            refused += 1
            continue
        own = folder.run(*"--trace trace.json --baseline own.json".split())
        if stored.returncode or own.returncode:
            return f"storing a day with noise {noises} ends with {stored.returncode}, and itself beside it with {own.returncode}: {own.stdout}"
    return "" if 0 < refused < 6 else f"{refused} of 6 good days were refused"


def check_ranks(folder):
    """Of two ranks one is slower: neither its other half nor the other rank hides it."""
    def guard(first, second, flag="--baseline"):
        (folder.path / "rank0.json").write_text(first)
        (folder.path / "rank1.json").write_text(second)
        return folder.run(*f"--trace rank0.json --trace rank1.json {flag} ranks.json --json".split())

    stored = guard(trace_of_day(1), trace_of_day(2), "--write-baseline")
    if stored.returncode or not json.loads(stored.stdout).get("wrote_baseline"):
        return f"storing a baseline of two ranks ends with {stored.returncode}: {stored.stderr.strip()}"
    for seed in range(20, 23):
        same = guard(trace_of_day(seed), trace_of_day(seed + 50))
        if same.returncode:
            return f"two ranks as on the good day end with {same.returncode}: {same.stdout.strip()}"
        for slowed in ({"slow": "layers.2", "factor": 2.0}, {"host": 1.5}):
            done = guard(trace_of_day(seed), trace_of_day(seed + 50, **slowed))
            names = {alarm["name"] for alarm in json.loads(done.stdout)["alarms"]} if done.stdout else set()
            if done.returncode != 4 or not any(name.startswith("rank 1: ") for name in names):
                return f"rank 1 with {slowed} ends with {done.returncode}, alarms {names}: {done.stderr.strip()}"
    return ""


def check_refusals(folder):
    good = (folder.path / "good.json").read_text()
    other = trace_of_day(5).replace("layers.2", "layers.9")
    for name, text, trace, words in (("cut", good[: len(good) // 2], trace_of_day(5), "expected"),
                                     ("version", good.replace('"version": 1', '"version": 3'), trace_of_day(5), "version"),
                                     ("other layers", good, other, "layers.9")):
        (folder.path / "good.json").write_text(text)
        done = folder.guard(trace)
        said = done.stderr.strip()
        if done.returncode != 2 or len(said.splitlines()) != 1 or words not in said:
            return f"a baseline that is bad ({name}) ends with {done.returncode}: {said}"
    done = folder.run("--trace", "trace.json")
    if done.returncode != 2 or "--baseline" not in done.stderr:
        return f"--trace alone ends with {done.returncode}: {done.stderr.strip()}"
    return ""


def raise_busy(done):
    reason = json.loads(done.stdout)["reason"]
    if not any(words in reason for words in ("blocks were dropped", "scatter")):
        raise RuntimeError(f"INCONCLUSIVE for another reason than a busy machine: {reason or 'none is said'}")
    raise Absent(reason)


def check_shared_cores(training):
    """More devices than cores are told of by each subcommand that measures, before it does."""
    cores = len(os.sched_getaffinity(0))
    share = f"{cores + 1} devices share the {cores} core"
    for command in (f"profile --run run.json --devices {cores + 1} --rounds 1 --steps 2 --cluster-out wide.json",
                    "train --run run.json --profile model.json --cluster wide.json --steps 1",
                    "plan --profile model.json --cluster wide.json --batch 16 --micro-batch 4 --max-stages 2 --schedules gpipe,1f1b --out wide_plan.json",
                    "verify --run run.json --cluster wide.json --plan wide_plan.json --blocks 2 --steps 1"):
        done = training.run(*command.split())
        if (share in done.stderr) != (not command.startswith("plan")):
            return f"`{command}` on {cores} cores ends with {done.returncode}: {done.stderr.strip()}"
        if done.returncode not in (0, 5):
            return f"`{command}` ends with {done.returncode}: {done.stderr.strip()}"
        if done.returncode == 5 and "INCONCLUSIVE: " not in done.stdout:
            return f"`{command}` is INCONCLUSIVE without a reason: {done.stdout.strip()}"
    return ""


def check_accepted_load(training, verify):
    """With --accept-load no block is dropped, and a day that was measured so is compared with its like alone."""
    stored = training.run(*verify, "--accept-load", "--write-baseline", "loaded.json")
    answer = json.loads(stored.stdout) if stored.stdout else {}
    if stored.returncode not in (0, 5) or "dropped" in (answer.get("reason") or ""):
        return f"a baseline with --accept-load ends with {stored.returncode}: {answer.get('reason')} {stored.stderr.strip()}"
    if stored.returncode == 5:
        return ""
    kept = json.loads((training.folder / "loaded.json").read_text())
    if kept["question"].get("foreign_load") != "accepted" or "foreign_cores" not in kept["fingerprint"]:
        return f"a baseline with --accept-load does not say so: {kept['question']}, {kept['fingerprint']}"
    same = training.run(*verify, "--accept-load", "--baseline", "loaded.json")
    if same.returncode not in (0, 4, 5) or "foreign_cores" not in {change["key"] for change in json.loads(same.stdout)["fingerprint_changes"]}:
        return f"--accept-load beside its baseline ends with {same.returncode} and tells no load: {same.stdout} {same.stderr.strip()}"
    strict = training.run(*verify, "--baseline", "loaded.json")
    if strict.returncode != 2 and not (strict.returncode == 5 and "dropped" in json.loads(strict.stdout)["reason"]):
        return f"a strict day beside one with --accept-load ends with {strict.returncode}: {strict.stderr.strip()}"
    return ""


def check_plan(name):
    """A plan of two cores: a layer that runs half again as slowly as on the good day is named."""
    training = Training(name)
    complaint = check_shared_cores(training)
    if complaint:
        return complaint
    planned = training.run("plan", *"--profile model.json --cluster cluster.json --batch 16 --micro-batch 4 --max-stages 2 --schedules gpipe,1f1b --out plan.json".split())
    if planned.returncode:
        return f"plan exits {planned.returncode}: {planned.stderr.strip()}"
    verify = "verify --run run.json --cluster cluster.json --plan plan.json --blocks 16 --steps 4 --quiet --json".split()
    complaint = check_accepted_load(training, verify)
    if complaint:
        return complaint
    stored = training.run(*verify, "--write-baseline", "good.json")
    if stored.returncode == 5:
        raise_busy(stored)
    if stored.returncode or not (training.folder / "good.json").exists():
        return f"storing a baseline of a plan ends with {stored.returncode}: {stored.stderr.strip()}"
    stored_kinds = {value["kind"] for value in json.loads((training.folder / "good.json").read_text())["values"]}
    if not {"step", "layer", "prediction", "link"} <= stored_kinds:
        return f"the baseline of a plan holds {sorted(stored_kinds)} alone"
    typo = training.run(*verify, "--baseline", "typo.json")
    if typo.returncode != 2 or "typo.json" not in typo.stderr or (training.folder / "typo.json").exists():
        return f"a baseline of a plan that is not there ends with {typo.returncode}: {typo.stderr.strip()}"
    slow = training.run(*verify, "--baseline", "good.json", "--plant", "1:300")
    if slow.returncode == 5:
        raise_busy(slow)
    answer = json.loads(slow.stdout)
    layer = json.loads((training.folder / "model.json").read_text())["layers"][1]["name"]
    if slow.returncode != 4 or ("layer", layer) not in {(alarm["kind"], alarm["name"]) for alarm in answer["alarms"]}:
        return f"a layer four times as slow ends with {slow.returncode}, alarms {answer['alarms']}, expected {layer}: {slow.stderr.strip()}"
    return ""


def main():
    plan, code = "a planted slow layer of a plan is named", 0
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(name)
        complaint = check_traces(folder) or check_consistency(folder) or check_ranks(folder) or check_refusals(folder)
    if not complaint:
        with tempfile.TemporaryDirectory() as name:
            try:
                complaint = check_plan(name)
            except Absent as absent:
                plan, code = f"skipped: plans not tried: {absent}", 77
    print(complaint if complaint else f"{len(DAYS)} kinds of days are told apart from their traces, five draws each; {plan}")
    return 1 if complaint else code


sys.exit(main())
