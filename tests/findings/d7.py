#!/usr/bin/env python3
"""A reader takes at most 64 MiB + 16 bytes per byte of its file; a what-if above --max-memory is refused before it takes memory.

A tenth of the readers, drawn with SEED, meet one of their own dense files and one of the shapes that all readers meet, and a sixth of the
what-ifs are asked; with ALL_SHAPES=1 every reader meets all of them, and all are."""
import functools
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
import dense_files as dense  # noqa: E402
from kineto_steps import trace_of_steps  # noqa: E402
from training import Absent, Failed, Training, one_line  # noqa: E402

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.environ.get("FRAZIL", str(TREE / "build/bin/frazil"))
MIB = 1 << 20

SHORT_TABLE = "name,forward_ms,backward_ms,activation_kB,parameter_kB\n"
PLANNED = "--profile m --cluster c"
SAILOR = TREE.parent / "shared/data/sailor"

# Name: the question, the file in it that is attacked, and dense files of its own form. FILE stands for the attacked file; a run's
# folder is a copy whose file is replaced.
READERS = {
    "profile": ("plan --profile FILE --cluster c --batch 8", "f", {
        "layers": lambda: dense.MODEL + dense.times(dense.LAYER) + '],"edges":[]}',
        "numbers": lambda: dense.MODEL + dense.times("0") + "]}",
        "keys": lambda: '{"format":"frazil.model","version":1,"provenance":{' + dense.times('"%07d":"x"') + '},"model":"m"}',
    }),
    "cluster": ("plan --profile m --cluster FILE --batch 8", "f", {
        "devices": lambda: dense.CLUSTER + dense.times(dense.DEVICE) + '],"links":[0]}'}),
    "plan": (f"simulate {PLANNED} --plan FILE", "f", {
        "actions": lambda: dense.PLAN + '{"actions":[[' + dense.times('"0F0"') + "]]}}"}),
    "plan to export": (f"export --to svg {PLANNED} --plan FILE --out o", "f", {}),
    "freeze trace": (f"plan {PLANNED} --batch 8 --forecast FILE", "f", {
        "masks": lambda: dense.LOG + dense.times('{"step":0,"kind":"mask","mask":"1"}', between="\n")}),
    "table of layers": ("import csv FILE --out o", "f", {
        "layers": lambda: SHORT_TABLE + dense.times("%d,1,2,1,1", between="\n"),
        "a long line": lambda: SHORT_TABLE + "a," * (dense.SIZE // 2),
        "quoted": lambda: SHORT_TABLE + '"",' * (dense.SIZE // 3)}),
    "graph of PipeDream": ("import pipedream FILE --out o", "f", {
        "nodes": lambda: dense.times(dense.NODE, between=""),
        "edges": lambda: dense.NODE % 0 + dense.times("\tnode%d -- node0\n", between=""),
        "sizes": lambda: (dense.NODE % 0).replace("activation_size=1.0", "activation_size=[" + dense.times("1", between=";") + "]")}),
    "trace of PyTorch": ("import kineto FILE --out o --micro-batch-size 1", "f", {
        "operations": dense.operations, "steps without layers": dense.marks_in_many_steps, "threads": dense.threads,
        "names": dense.names, "memory": dense.memory, "no events": lambda: dense.trace_of(dense.times("{}"))}),
    "schedule of PyTorch": (f"import pytorch-csv FILE --plan p {PLANNED} --out o", "f", {
        "two rows": lambda: "\n".join(["0F0," + dense.times("1F%d")[:dense.SIZE // 2]] * 2),
        "a rank per row": lambda: dense.times("1%d00000F1", between="\n"),
        "ranks": lambda: dense.times("%dF1", between="\n")}),
    "plan of Sailor": (f"import sailor FILE --data {SAILOR} --out o", "f", {}),
    "work graph": ("plan --graph FILE", "f", {}),
    "trace to verify": ("verify --trace FILE --baseline b", "f", {"operations": dense.operations}),
    "baseline": ("verify --trace t --baseline FILE", "f", {}),
    "time line": ("report --predicted FILE --measured FILE --json", "f", {
        "spans": lambda: dense.TIMELINE + dense.times("0,receive,0,0F%d,1,2", between="\n") + "\n"}),
    "masks of a run": ("report run --out o", "run/trace.jsonl", {
        "steps": lambda: dense.LOG.replace("true", "false") + dense.times('{"step":0,"kind":"step","loss":1,"samples":1,"time_ns":1}', between="\n")}),
    "memory record": ("report run --out o", "run/phase-0/memory.json", {}),
    "measured time line": ("report run --out o", "run/phase-0/measured.csv", {}),
    "journal": ("check run", "run/checkpoints/steps.journal", {}),
    "events": ("check run", "run/events.jsonl", {
        "steps": lambda: dense.LOG + dense.times('{"step":0,"kind":"step","loss":1,"samples":1,"time_ns":1}', between="\n") + "\n"}),
    "kernels": ("check run", "run/checkpoints/kernels.json", {}),
    "run of a journal": ("check run", "run/checkpoints/run.json", {}),
    "weights": ("check run", "run/weights.safetensors", {"tensors": dense.tensors}),
    "checkpoint": ("check run", "run/checkpoints/step-000000000008.safetensors", {"tensors": dense.tensors}),
    "plan of a phase": ("check run", "run/phase-0/plan.json", {}),
    "run configuration": (f"train {PLANNED} --run FILE --steps 1 --quiet", "f", {}),
    "flags of a run": ("train --resume run --quiet", "run/inputs/flags.json", {}),
    "events to go on with": ("train --resume run --steps 9 --quiet", "run/events.jsonl", {
        "steps": lambda: dense.LOG + dense.times('{"step":0,"kind":"step","loss":1,"samples":1,"time_ns":1}', between="\n") + "\n"}),
    "journal to go on with": ("train --resume run --steps 9 --quiet", "run/checkpoints/steps.journal", {}),
}
# Exit codes beside 0 and 2: `check` says with 4 that a run does not hold.
CODES = {"check": (0, 2, 4)}

WHAT_IFS = (
    "--stages 1024 --micro-batches 64 --schedule 1f1b",
    "--stages 16 --micro-batches 4000 --schedule zb-h1",
    "--stages 8 --micro-batches 9000 --schedule interleaved-1f1b",
    "--stages 512 --micro-batches 100 --schedule v-min",
    "--stages 4 --micro-batches 30000 --schedule dualpipe",
    "--stages 32 --micro-batches 2624 --schedule varuna",
    "--stages 2 --micro-batches 60000 --schedule pipedream-2bw",
    "--stages 16 --micro-batches 4000 --schedule gpipe --out o.csv",
    "--stages 64 --micro-batches 900 --schedule zb-h1 --chrome o.json",
    "--stages 16 --micro-batches 4000 --schedule 1f1b --messages",
    "--stages 64 --micro-batches 300 --schedule search",
    "--stages 16 --micro-batches 2000 --compare",
)
TIMES = "--forward 1ms --backward-input 1ms --backward-weight 1ms --hop 0.3ms"


def ask(folder, question):
    """Returns exit code, peak of resident memory and complaint of one call."""
    done = os.path.join(folder, "usage")
    # A process of its own, for the system keeps only the largest peak of all children.
    code = (
        "import resource,subprocess,sys;"
        "p=subprocess.run(sys.argv[2:],stdout=subprocess.DEVNULL,stderr=subprocess.PIPE);"
        "u=resource.getrusage(resource.RUSAGE_CHILDREN);"
        "open(sys.argv[1],'wb').write(b'%d %d %s'%(p.returncode,u.ru_maxrss*1024,p.stderr))"
    )
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (9 << 30, 9 << 30))
    subprocess.run([sys.executable, "-c", code, done, FRAZIL, *question.split()], cwd=folder, preexec_fn=limit, check=True)
    returned, peak, complaint = pathlib.Path(done).read_bytes().split(b" ", 2)
    return int(returned), int(peak), complaint.decode(errors="replace").strip()


def complain(name, question, file, code, peak, complaint, size, least):
    """What is wrong with an answer; empty if nothing is."""
    verb = question.split()[0]
    if peak > least + 16 * size:
        return f"{name}: {size} bytes took {peak // MIB} MiB, allowed {(least + 16 * size) // MIB}"
    if code not in CODES.get(verb, (0, 2)):
        return f"{name}: exit code {code}: {complaint[-300:]}"
    if code == 2 and (len(complaint.splitlines()) != 1 or not complaint.startswith(f"frazil {verb}: ")):
        return f"{name}: exit code 2 is told in {len(complaint.splitlines())} lines: {complaint[-300:]}"
    if code == 2 and f" {file}:" not in complaint:
        return f"{name}: what is refused is not the file: {complaint[-300:]}"
    return ""


def attack(folder, name, question, file, shapes):
    """Asks a reader for each of the files; returns what is wrong, how many were tried, and the most bytes per byte."""
    place = folder / file
    question = question.replace("FILE", file)
    renew_run(folder)
    place.write_bytes(b"x")
    # libtorch alone takes more than 64 MiB.
    least = max(64 * MIB, ask(folder, question)[1] + 16 * MIB) if question.startswith("train") else 64 * MIB
    wrong, worst = [], 0
    for shape, make in shapes.items():
        data = make().encode("latin1")
        renew_run(folder)
        place.write_bytes(data)
        code, peak, complaint = ask(folder, question)
        if told := complain(f"{name}, {shape}", question, file, code, peak, complaint, len(data), least):
            wrong.append(told)
        worst = max(worst, (peak - least) / len(data))
    return wrong, len(shapes), worst


def renew_run(folder):
    """Puts the run as it was made in the place of one that was attacked, and perhaps gone on with."""
    if (folder / "made").exists():
        shutil.rmtree(folder / "run", ignore_errors=True)
        shutil.copytree(folder / "made", folder / "run")


def make_run(folder):
    """Makes a run of eight steps with all files that a run leaves; returns why it cannot be made."""
    try:
        training = Training(folder)
    except Absent as absent:
        return str(absent)
    ended = training.train(*"--steps 8 --checkpoint-every 4 --out made".split())
    if ended.returncode:
        raise Failed(f"train exits {ended.returncode}: {one_line(ended.stderr)}")
    return ""


def check_readers(folder, seed, every):
    absent = make_run(folder)
    wrong, tried, worst, left_out = [], 0, 0, []
    draw = random.Random(seed)
    readers = list(READERS) if every else draw.sample(list(READERS), (len(READERS) + 9) // 10)
    for name in readers:
        question, file, own = READERS[name]
        if absent and (file.startswith("run/") or question.startswith("train")):
            left_out.append(f"{name} ({absent})")
            continue
        if "sailor" in question and not SAILOR.exists():
            left_out.append(f"{name} (no {SAILOR})")
            continue
        names = list(dense.FEW if question.startswith("train") else dense.SHAPES)
        if not every:
            names, own = draw.sample(names, 1), dict(draw.sample(sorted(own.items()), min(1, len(own))))
        shapes = {shape: functools.partial(dense.shape, shape) for shape in names}
        told, asked, most = attack(folder, name, question, file, {**shapes, **own})
        wrong, tried, worst = wrong + told, tried + asked, max(worst, most)
    for line in wrong:
        print(line)
    if left_out:
        print(f"{len(left_out)} readers not tried: {'; '.join(left_out)}")
    said = f"{len(readers) - len(left_out)} of {len(READERS)} readers of {tried} files took at most {worst:.1f} bytes per byte beside 64 MiB, and refused in one sentence (seed {seed})"
    return f"{len(wrong)} of {tried} files" if wrong else said, not wrong


def check_what_ifs(folder, seed, every):
    large = f"simulate --stages 4096 --micro-batches 2000 {TIMES} --schedule zb-h1"
    code, peak, complaint = ask(folder, large)
    if code != 2 or peak > 64 * MIB:
        return f"`{large}`: exit code {code}, {peak // MIB} MiB", False
    ratios = []
    for what_if in WHAT_IFS if every else random.Random(seed).sample(WHAT_IFS, max(1, len(WHAT_IFS) // 6)):
        question = f"simulate {what_if} {TIMES}"
        code, _, complaint = ask(folder, f"{question} --max-memory 1MiB")
        told = re.search(r"take some (\d+) MiB", complaint)
        if code != 2 or not told:
            return f"`{question} --max-memory 1MiB`: exit code {code}: {complaint}", False
        code, peak, complaint = ask(folder, question)
        ratio = int(told[1]) * MIB / peak
        if code != 0 or not 1 <= ratio <= 1.5:
            return f"`{question}`: exit code {code}, {peak // MIB} MiB, estimated {told[1]}: {complaint}", False
        ratios.append(ratio)
    return f"{len(ratios)} what-ifs were estimated at {min(ratios):.2f} to {max(ratios):.2f} of what they took", True


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "m").write_text(dense.MODEL + dense.LAYER % 0 + '],"edges":[]}')
        (folder / "c").write_text(dense.CLUSTER + dense.DEVICE % 0 + "]}")
        (folder / "t").write_text(trace_of_steps(steps=9))
        for question in (f"plan {PLANNED} --batch 1 --out p", "verify --trace t --write-baseline b"):
            code, _, complaint = ask(folder, question)
            if code:
                print(f"`{question}`: exit code {code}: {complaint}")
                return 1
        seed, every = int(os.environ.get("SEED", random.randrange(1 << 30))), bool(os.environ.get("ALL_SHAPES"))
        for check in (check_readers, check_what_ifs):
            said, holds = check(folder, seed, every)
            print(said if holds else f"{said} (seed {seed})")
            if not holds:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
