#!/usr/bin/env python3
"""What imported models cost, against the bars of docs/benchmarks.md. Takes about 4 minutes and both cores of a small machine.

    .deps/torch-python/python tests/bench/imported/measure.py [--rounds 30] [--only operations,mlp,vit,...] [--out FILE]

Parts, each over rounds in which all sides take their turn, in an order drawn anew each time:

    operations       an operation of an imported model less the same call in C++, in microseconds
    mlp, vit, ...    a step of the imported model over that of the same model in C++, and over that of eager PyTorch with the same
                     micro-batches, all on one device with one thread, AdamW (fused), from the same start values on the same samples
    minilm, minilm-table   the same against PyTorch alone, for a BERT of MiniLM's size: its table of words does not train; trains
    reading          the file of that model read and the model made, in seconds
    images, tokens   a step whose samples are loaded from files beside it (crop and flip; 32 tokens) over one on samples that were made before

Reported: the median over the rounds and its 95 % bootstrap interval, and beside the bar: "met" if the interval lies below it, "undecided" if it
holds it, "missed" if it lies above; and how many cores other programs kept busy meanwhile. Above about 0.3 of these a ratio says little.
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("MKL_CBWR", "AVX2,STRICT")  # before torch is there: one branch of kernels on all sides
ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python"))

import frazil  # noqa: E402
import models  # noqa: E402
import torch  # noqa: E402

WARM_UP = 3
RESAMPLES = 4000
LOADED = ("images", "tokens")
PARTS = ("operations", *models.CASES, "reading", *LOADED)
CORES = os.sched_getaffinity(0)  # the programs put a run's only device on the first


class Load:
    """How many cores programs other than this one and its children keep busy."""

    def __init__(self):
        self.began = self.read()

    @staticmethod
    def read():
        with open("/proc/stat") as file:
            numbers = [int(word) for word in file.readline().split()[1:9]]
        idle = numbers[3] + numbers[4]
        return time.monotonic(), sum(numbers) - idle

    def cores(self, own):
        now, busy = self.read()
        seconds = now - self.began[0]
        return max(0.0, (busy - self.began[1]) / os.sysconf("SC_CLK_TCK") / seconds - own / seconds)


def cpu_seconds():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def interval(values, draw):
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    cut = round(0.025 * RESAMPLES)
    return medians[cut], medians[-1 - cut]


class Report:
    def __init__(self, out):
        self.out = out
        self.draw = random.Random(1)
        self.missed = 0

    def row(self, what, values, bar, unit="", note=""):
        low, high = interval(values, self.draw)
        verdict = "" if bar is None else "met" if high <= bar else "missed" if low > bar else "undecided"
        self.missed += verdict == "missed"
        shown = "" if bar is None else f"at most {bar:g}"
        print(f"{what:<44}{statistics.median(values):8.3f} ({low:.3f} to {high:.3f}){unit:<3}  {shown:<13}{verdict:<10}{note}", flush=True)
        if self.out:
            self.out.write(json.dumps({"what": what, "bar": bar, "low": low, "high": high, "values": values, "note": note}) + "\n")


class Server:
    """bench_imported_steps at work on one model."""

    def __init__(self, program, model, samples, case):
        command = [program, "--model", str(model), "--samples", str(samples), "--batch", str(case.batch),
                   "--micro-batches", str(case.micro_batches)]
        if case.built_in:
            command += ["--built-in", json.dumps(case.built_in)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"bench_imported_steps ended with {self.process.wait()}")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Eager:
    """Stock PyTorch at work on one model."""

    def __init__(self, case):
        self.case = case
        self.optimizer = torch.optim.AdamW([p for p in case.model.parameters() if p.requires_grad], lr=1e-4, weight_decay=0, fused=True)
        size = case.batch // case.micro_batches
        parts = zip(*(tensor.split(size) for tensor in case.inputs.values()))
        cut = list(zip(parts, case.labels.split(size)))
        self.batches = [cut[at : at + case.micro_batches] for at in range(0, len(cut), case.micro_batches)]
        self.at = 0

    def step(self):
        total = 0
        for inputs, labels in self.batches[self.at % len(self.batches)]:
            loss = self.case.loss(self.case.model(*inputs), labels) * (1 / self.case.micro_batches)
            loss.backward()
            total += loss.detach()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.at += 1
        return total.item()

    def take_steps(self, count):
        began = time.perf_counter()
        losses = [self.step() for _ in range(count)]
        return {"seconds": (time.perf_counter() - began) / count, "losses": losses}


def export(case, folder):
    """The model as a file and its samples as another, once for each model."""
    model, samples = folder / f"{case.name}.safetensors", folder / f"{case.name} samples.safetensors"
    if samples.exists():
        return model, samples
    example = tuple(tensor[:4].clone() for tensor in case.inputs.values())
    with contextlib.redirect_stdout(sys.stderr):
        frazil.export_model(case.model, example, case.labels[:4].clone(), case.loss, model)
    names = [entry["name"] for entry in read_graph(model)["inputs"]]
    tensors = dict(zip(names, case.inputs.values()))
    frazil.write_tensors(samples, {**tensors, "labels": case.labels})
    return model, samples


def read_graph(path):
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        return json.loads(json.loads(file.read(size))["__metadata__"]["frazil.model"])


def check_losses(case, answers):
    """All sides must do the same work: the losses of their first steps agree."""
    if case.draws:
        return
    expected = answers["eager"]["losses"]
    for side, answer in answers.items():
        for ours, theirs in zip(answer["losses"], expected):
            if abs(ours - theirs) > 1e-3 * abs(theirs):
                sys.exit(f"{case.name}: {side} has the loss {ours}, PyTorch {theirs}")


def measure_model(given, case, folder, report):
    model, samples = export(case, folder)
    server = Server(given.bin / "bench_imported_steps", model, samples, case)
    eager = Eager(case)
    sides = {"imported": lambda n: server.ask(f"imported {n}"), "eager": eager.take_steps}
    if case.built_in:
        sides["built-in"] = lambda n: server.ask(f"built-in {n}")
    check_losses(case, {name: take(WARM_UP) for name, take in sides.items()})
    seconds = {name: [] for name in sides}
    load, own = Load(), cpu_seconds()
    began = process_cpu(server.process.pid)
    os.sched_setaffinity(0, {min(CORES)})
    for _ in range(given.rounds):
        for name in random.sample(list(sides), len(sides)):
            seconds[name].append(sides[name](case.steps)["seconds"])
    others = load.cores(cpu_seconds() - own + process_cpu(server.process.pid) - began)
    os.sched_setaffinity(0, CORES)
    server.close()
    note = " ".join(f"{name} {statistics.median(times) * 1e3:.2f} ms" for name, times in seconds.items()) + f", others {others:.2f}"
    if case.built_in:
        report.row(f"{case.name}: imported / in C++", ratios(seconds["imported"], seconds["built-in"]), 1.01, note=note)
    is_apart = case.name.endswith("trained")
    report.row(f"{case.name}: imported / PyTorch", ratios(seconds["imported"], seconds["eager"]), None if is_apart else 1.0, note=note)


def process_cpu(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ratios(ours, theirs):
    return [o / t for o, t in zip(ours, theirs)]


def measure_reading(given, folder, report):
    case = models.minilm()
    model, samples = export(case, folder)
    server = Server(given.bin / "bench_imported_steps", model, samples, case)
    answers = [server.ask("read") for _ in range(given.rounds)]
    server.close()
    note = f"{answers[0]['parameters'] / 1e6:.1f} M parameters, {model.stat().st_size / 1e6:.0f} MB"
    report.row("reading", [answer["seconds"] for answer in answers], 1.0, " s", note)


def measure_operations(given, report):
    done = subprocess.run([given.bin / "bench_imported_operations"], check=True, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        record = json.loads(line)
        more = [ours - theirs for ours, theirs in zip(record["imported_us"], record["direct_us"])]
        what = "an operation more, " + ("with autograd" if record["autograd"] else "without autograd")
        note = f"in C++ {statistics.median(record['direct_us']):.3f} us"
        report.row(what, more, 0.15, " us", note)


def write_run(kind, folder):
    """A configuration of a model that takes about 5,000 samples a second on a core, with its samples in files."""
    if kind == "images":
        inputs, labels = models.images(10_240, 32, 10)
        model = {"kind": "mlp", "image": 32, "channels": 3, "widths": [512, 128], "classes": 10}
        augmentation = {"kind": "crop", "padding": 4, "flip": True}
    else:
        ids, mask = models.sentences(10_240, 32, 1000)
        inputs, labels = {"ids": ids, "segments": torch.zeros_like(ids), "mask": mask}, torch.randint(4, (len(ids),))
        model = {"kind": "encoder", "vocabulary": 1000, "tokens": 32, "dim": 40, "blocks": 1, "heads": 4}
        augmentation = {"kind": "none"}
    for part, count in (("train", len(labels)), ("test", 64)):
        tensors = {**{name: tensor[:count].clone() for name, tensor in inputs.items()}, "labels": labels[:count].clone()}
        frazil.write_tensors(folder / f"{kind} {part}.safetensors", tensors, {"inputs": ",".join(inputs)})
    path = folder / f"{kind}.json"
    path.write_text(json.dumps({
        "format": "frazil.run", "version": 1, "model": model, "batch_size": 64, "micro_batch_size": 16, "augmentation": augmentation,
        "data": {"kind": "tensors", "train": f"{kind} train.safetensors", "test": f"{kind} test.safetensors"}}))
    return path


def measure_loading(given, kind, folder, report):
    command = [given.bin / "bench_loading_steps", "--run", write_run(kind, folder), "--rounds", str(given.rounds), "--steps", "12"]
    load, own = Load(), cpu_seconds()
    record = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    others = load.cores(cpu_seconds() - own)
    kept = statistics.median(record["kept_s"])
    note = (f"{kept * 1e3:.2f} ms a step, {record['samples'] / kept:,.0f} samples/s, "
            f"{record['loading_cpu_s'] / record['samples'] * 1e6:.1f} us to load one, others {others:.2f}")
    report.row(f"{kind}: loaded beside / made before", ratios(record["loaded_s"], record["kept_s"]), 1.02, note=note)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=ROOT / "build/bin", help="folder of the programs, default %(default)s")
    parser.add_argument("--rounds", type=int, default=30, help="default %(default)s")
    parser.add_argument("--only", default=",".join(PARTS), help="a comma list, default %(default)s")
    parser.add_argument("--out", help="file that takes all values as JSON lines")
    given = parser.parse_args()
    given.only = given.only.split(",")
    if unknown := set(given.only) - set(PARTS):
        parser.error(f"--only: {', '.join(sorted(unknown))}: one of {', '.join(PARTS)}")
    return given


def main():
    given = parse()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    random.seed(1)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        report = Report(stack.enter_context(open(given.out, "w")) if given.out else None)
        for part in given.only:
            if part == "operations":
                measure_operations(given, report)
            elif part == "reading":
                measure_reading(given, folder, report)
            elif part in LOADED:
                measure_loading(given, part, folder, report)
            else:
                measure_model(given, models.CASES[part](), folder, report)
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
