#!/usr/bin/env python3
"""Takes each kind of model through profile, plan, simulate, verify and train as a user does; its weights are the same under every plan.

every_model.py [KIND | FOLDER | --by-turns N]...: default all kinds; N of them, other ones each day; in a FOLDER lie model.safetensors, a model file, and data.safetensors, 64 samples or more.
FRAZIL names the program, default build/bin/frazil of this tree. Exit code 0: all held; 1: something did not; 77: the program is not there.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TREE / "tests/findings/support"))
from training import FRAZIL, RUN, Absent, Failed, one_line, tell  # noqa: E402

TRANSFORMER = {"dim": 16, "blocks": 2, "heads": 2, "dropout": 0.1}
TOKENS = {**TRANSFORMER, "tokens": 8, "expansion": 2}
CELLS = {"image": 6, "channels": 2, "stem": 4, "widths": [4, 6], "cells": [2, 1], "head": 8, "classes": 3}
MODELS = {
    "vit": {**TRANSFORMER, "kind": "vit", "patch": 4, "classes": 5},
    "decoder": {**TOKENS, "kind": "decoder", "vocabulary": 12},
    "encoder": {**TOKENS, "kind": "encoder", "vocabulary": 12, "classes": 3},
    "cnn": {"kind": "cnn", "image": 6, "channels": 2, "width": 4, "detour": 6, "classes": 3},
    "mlp": {"kind": "mlp", "image": 4, "widths": [16, 12, 8], "classes": 3},
    "vgg": {"kind": "vgg", "image": 6, "channels": 2, "widths": [4, 6], "convolutions": 2, "separable": True, "classes": 3},
    "mobilenet": {**CELLS, "kind": "mobilenet", "operations": [["k5e3", "zero"], ["k3e6"]]},
    "supernet": {**CELLS, "kind": "supernet", "architecture_every": 3},
}
# The student has two layers where the teacher has one.
DISTILLATION = {
    "kind": "distillation", "teacher": MODELS["mlp"], "student": {**MODELS["mlp"], "widths": [16, 6, 12, 8]},
    "blocks": ["layer1", {"teacher": "layer2", "student": "layer3"}, {"teacher": "layer3", "student": "layer4"}, "head"],
}
FREEZE = {"alpha": 0.5, "start_epoch": 2, "interval_epochs": 1}
VERDICTS = (0, 4, 5)  # as the costs say, otherwise, too unsteady to tell
INPUTS = "--run run.json --profile model.json --cluster cluster.json --quiet --json".split()


class Kind:
    def __init__(self, folder, name):
        self.folder = folder
        self.name = name
        self.model, self.data = describe(name, folder)
        self.write_run("run.json")
        self.write_run("frozen.json", freeze=FREEZE)
        self.write_run("cached.json", freeze=FREEZE, cache={"kind": "on", "admission": "always"})
        self.succeed("profile", *"--run run.json --devices 2 --rounds 1 --steps 2 --memory-limit 1GiB --quiet "
                     "--out model.json --cluster-out cluster.json".split())
        self.profile = json.loads((folder / "model.json").read_text())

    def write_run(self, name, **changes):
        optimizer = {"learning_rate": 0.01, "cosine": False}
        run = {**RUN, "model": self.model, "data": self.data, "epochs": 3, "optimizer": optimizer, "freeze": {}, **changes}
        (self.folder / name).write_text(json.dumps(run))

    def run(self, *words):
        return subprocess.run([FRAZIL, *words], cwd=self.folder, capture_output=True, text=True, timeout=300)

    def succeed(self, *words):
        done = self.run(*words)
        if done.returncode != 0:
            raise Failed(f"{self.name}: {' '.join(words)} exits {done.returncode}: {one_line(done.stderr or done.stdout)}")
        return done.stdout

    def train(self, *flags, run="run.json"):
        answer = json.loads(self.succeed("train", *[run if word == "run.json" else word for word in INPUTS], *flags))
        return answer["state_hash"], answer["loss"], answer["accuracy"]

    def events(self, run):
        """What a run logged: losses of steps, and plans by the step from which they hold."""
        logged = [json.loads(line) for line in (self.folder / run / "events.jsonl").read_text().splitlines()[1:]]
        losses = {event["step"]: event["loss"] for event in logged if event["kind"] == "step"}
        return losses, {event["step"]: event["summary"] for event in logged if event["kind"] == "plan"}

    def write_plan(self, name, pipelines):
        """Pipelines are lists of (first layer, device), and share the micro-batches."""
        layers, held = len(self.profile["layers"]), json.loads((self.folder / "best.json").read_text())
        each = 4 // len(pipelines)
        held["pipelines"] = [
            {"stages": [{"layers": [[first, end - 1]], "devices": [device]}
                        for (first, device), end in zip(stages, [first for first, _ in stages[1:]] + [layers])],
             "micro_batches": [[index * each, (index + 1) * each - 1]]}
            for index, stages in enumerate(pipelines)]
        held["schedule"] = {"name": "1f1b"}
        held["mask"] = "1" * len(self.profile["blocks"])
        (self.folder / name).write_text(json.dumps(held))
        self.succeed(*f"simulate --plan {name} --profile model.json --cluster cluster.json".split())


def describe(name, folder):
    """The model and the data of a kind, or of the files in a folder. A distillation begins with training its teacher."""
    if name == "distillation":
        (folder / "mlp").mkdir()
        Kind(folder / "mlp", "mlp").succeed("train", *INPUTS, "--out", "taught")
        return {**DISTILLATION, "teacher_weights": str(folder / "mlp/taught/weights.safetensors")}, RUN["data"]
    if name in MODELS:
        return MODELS[name], RUN["data"]
    place = pathlib.Path(name).resolve()
    data = str(place / "data.safetensors")
    return {"kind": "file", "path": str(place / "model.safetensors")}, {"kind": "tensors", "train": data, "test": data}


def differing(kind, known, what, found):
    return [] if found == known else [f"{kind}: {what} ends with {found}, expected {known}"]


def first_difference(whole, resumed):
    """Where two runs part, for who has to find out why."""
    (losses, plans), (others, changed) = whole, resumed
    apart = [step for step in losses if others.get(step) != losses[step]]
    where = f"losses differ from step {apart[0]} on" if apart else "all losses are equal"
    return f"{where}; plans {plans} and {changed}"


def check_kind(folder, name):
    """What is wrong with this kind, and the accuracy that it has reached."""
    kind = Kind(folder, name)
    kind.succeed(*"plan --profile model.json --cluster cluster.json --batch 16 --micro-batch 4 --out best.json".split())
    middle = len(kind.profile["layers"]) // 2
    for plan, pipelines in {"one": [[(0, 0)]], "stages": [[(0, 0), (middle, 1)]], "replicas": [[(0, 0)], [(0, 1)]]}.items():
        kind.write_plan(f"{plan}.json", pipelines)
    alone = kind.train("--keep-plan", "--plan", "one.json")
    wrong = differing(name, alone, "a run of two stages", kind.train("--keep-plan", "--plan", "stages.json"))
    wrong += differing(name, alone, "a run of two replicas", kind.train("--keep-plan", "--plan", "replicas.json"))
    frozen = kind.train("--out", "whole", run="frozen.json")
    wrong += differing(name, frozen, "a cached run over two processes", kind.train("--procs", "2", run="cached.json"))
    wrong += [f"{name}: nothing froze"] if frozen == alone else []
    kind.train("--steps", "6", "--checkpoint-every", "3", "--out", "kept", run="frozen.json")
    resumed = json.loads(kind.succeed(*"train --resume kept --steps 12 --quiet --json".split()))
    for found in differing(name, frozen[0], "a run that was resumed", resumed["state_hash"]):
        wrong.append(f"{found}; {first_difference(kind.events('whole'), kind.events('kept'))}")
    kind.succeed("check", "kept")
    verified = kind.run(*"verify --run run.json --cluster cluster.json --plan stages.json --blocks 2 --steps 2 --accept-load --quiet".split())
    if verified.returncode not in VERDICTS:
        wrong.append(f"{name}: verify exits {verified.returncode}: {one_line(verified.stderr)}")
    return wrong + refuse_digits(kind), alone[2]


def refuse_digits(kind):
    kind.write_run("run.json", data={"kind": "digits"})
    refused = kind.run("train", *INPUTS)
    needed = {"file": "a model of 8 x 8 images", "decoder": "a model that reads images", "encoder": "a model that reads images"}
    if needed.get(kind.model["kind"], "digit") in refused.stdout and refused.returncode == 2:
        return []
    return [f"{kind.name}: digits give {refused.returncode}: {one_line(refused.stdout)}"]


def find_day():
    """Days since 1970: the number in FRAZIL_DAY, else what the clock says."""
    day = os.environ.get("FRAZIL_DAY", "")
    return int(day) if day.isdigit() else int(time.time()) // 86400


def kinds_to_check(words):
    every = [*MODELS, "distillation"]
    if words[:1] != ["--by-turns"]:
        return words or every
    count = int(words[1])
    turn = count * find_day()
    return [every[(turn + i) % len(every)] for i in range(count)]


def check():
    if not pathlib.Path(FRAZIL).exists():
        raise Absent(f"no {FRAZIL}")
    wrong, seen, begin = [], [], time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        for kind in kinds_to_check(sys.argv[1:]):
            folder = pathlib.Path(name) / pathlib.Path(kind).name
            folder.mkdir()
            found, accuracy = check_kind(folder, kind)
            wrong += found
            seen.append(f"{folder.name} {100 * accuracy:.0f} %")
    told = f"equal bits under four plans, resumed, cached and over two processes; accuracy of {', '.join(seen)}; "
    return told + f"{time.monotonic() - begin:.0f} s", "; ".join(wrong)


if __name__ == "__main__":
    sys.exit(tell("every_model.py", check))
