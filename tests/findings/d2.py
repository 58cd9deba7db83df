#!/usr/bin/env python3
# A resume takes the kernels that the run was computed with, or exits with 2 and names both, unless other kernels are accepted.
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from journal import read_lines, words_of, write_lines, xxh64  # noqa: E402
from training import FRAZIL, Training, one_line, tell  # noqa: E402

STEPS = 40
FACTS = ("processor", "vendor", "features", "aten", "mkl", "torch")
LIMITS = f"--steps {STEPS} --checkpoint-every 8".split()


def with_kernels(training, name, *arguments):
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": name}
    return subprocess.run([FRAZIL, "train", *arguments], cwd=training.folder, capture_output=True, text=True,
                          env=environment, timeout=300)


def weight_hash(ended):
    return json.loads(ended.stdout).get("state_hash") if ended.returncode in (0, 143) and ended.stdout else "none"


def cut_back(folder, step):
    """The run as a crash left it: its newest checkpoint is of this step, its journal goes on."""
    (folder / "trace.jsonl").unlink()
    for path in (folder / "checkpoints").glob("step-*.safetensors"):
        if int(path.name[5:17]) > step:
            path.unlink()


def text_of(entry):
    return "".join(entry[fact] + "\n" for fact in FACTS).encode()


def pretend(folder, **facts):
    """Makes the run one that was computed with other kernels, in journal and kernels.json."""
    path = folder / "checkpoints/kernels.json"
    kernels = json.loads(path.read_text())
    entry = kernels["kernels"][-1]
    before = xxh64(text_of(entry))
    entry.update(facts)
    after = xxh64(text_of(entry))
    every = b"".join(f"{some['from_step']} {'other' if some['other_bits'] else 'same'}\n".encode() + text_of(some)
                     for some in kernels["kernels"])
    kernels["hash"] = f"{xxh64(every):016x}"
    path.write_text(json.dumps(kernels))
    journal = folder / "checkpoints/steps.journal"
    bodies = read_lines(journal.read_bytes())
    journal.write_bytes(write_lines([body.replace(f"{before:016x}".encode(), f"{after:016x}".encode())
                                     for body in bodies]))


def check():
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        inputs = "--run run.json --profile model.json --cluster cluster.json --quiet --json".split()
        whole = training.train("--out", "whole", *LIMITS, inputs=inputs)
        if whole.returncode:
            return "", f"train exits {whole.returncode}: {one_line(whole.stderr)}"
        wanted = weight_hash(whole)
        newest = max(int(path.name[5:17]) for path in (training.folder / "whole/checkpoints").glob("step-*") if
                     int(path.name[5:17]) < STEPS)
        # A resume whose environment names other kernels gives the same weights all the same.
        for how in ("default", "avx2"):
            shutil.rmtree(training.folder / "moved", ignore_errors=True)
            shutil.copytree(training.folder / "whole", training.folder / "moved")
            cut_back(training.folder / "moved", newest)
            moved = with_kernels(training, how, "--resume", "moved", "--json", "--quiet")
            if moved.returncode or weight_hash(moved) != wanted:
                return "", (f"ATEN_CPU_CAPABILITY={how}: exit {moved.returncode}, {weight_hash(moved)} in place of "
                            f"{wanted}: {one_line(moved.stderr)}")
        # A run that this processor cannot go on with.
        other = training.folder / "other"
        shutil.copytree(training.folder / "whole", other)
        cut_back(other, newest)
        pretend(other, vendor="AuthenticSome", torch="2.9.0", processor="Some 9000")
        before = training.texts("other")
        refused = training.run("train", "--resume", "other", "--json", "--quiet")
        if refused.returncode != 2 or "torch 2.9.0" not in refused.stderr or "as this process has" not in refused.stderr:
            return "", f"other kernels: exit {refused.returncode}: {one_line(refused.stderr)}"
        if training.texts("other") != before:
            return "", "a refused resume changes files"
        accepted = training.run("train", "--resume", "other", "--accept-other-kernels", "--json")
        if accepted.returncode or "bits differ from step" not in accepted.stderr:
            return "", f"accepted kernels: exit {accepted.returncode}: {one_line(accepted.stderr)}"
        lines = [words_of(body) for body in read_lines((other / "checkpoints/steps.journal").read_bytes())[1:]]
        if (newest, "other-kernels") not in [line[:2] for line in lines]:
            return "", f"the journal does not say that bits differ: {[line[:2] for line in lines if line[1][0] > 'f']}"
        report = training.run("report", "other", "--out", "page.html")
        said = f"bits differ from step {newest} on"
        if said not in report.stdout or said not in (training.folder / "page.html").read_text():
            return "", f"the report does not say that bits differ: {one_line(report.stdout)}"
        return (f"resumed with the recorded kernels under ATEN_CPU_CAPABILITY=default and avx2; refused: "
                f"{one_line(refused.stderr)}"), ""


sys.exit(tell("d2", check))
