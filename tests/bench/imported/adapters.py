#!/usr/bin/env python3
"""What training adapters alone costs: the encoder of examples/lora, as measured against as simulated. Takes about 10 minutes and both cores.

    .deps/torch-python/python tests/bench/imported/adapters.py [--reviews FOLDER] [--bin FOLDER] [--rounds 3]

FOLDER is where examples/sentiment/fetch.py left its packages; without it they are fetched anew. First the executor's messages, reductions,
gradients and moments are counted on that model (exec_imported_tests). Then, in each round: profile on two devices, plan with two replicas and
with two stages, train an epoch (63 steps) under each plan; reported is the measured time of a step over the simulated one, and over that of
the same encoder when all of it trains.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
BATCH, MICRO_BATCH = 32, 8
PLANS = {"2 replicas": ("--max-stages", "1"), "2 stages": ("--max-replicas", "1")}
SETTINGS = {"epochs": 1, "freeze": {}, "cache": {"kind": "off"}}


def call(*words, **environment):
    path = os.pathsep.join([str(ROOT / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, **environment}
    done = subprocess.run([str(word) for word in words], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))} exits {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def prepare(reviews, folder, example):
    """The model file, data and run configuration of an example."""
    folder.mkdir()
    for name in ("model", "reviews.txt"):
        (folder / name).symlink_to((reviews / name).resolve())
    call(sys.executable, EXAMPLES / "sentiment/prepare.py", folder)
    call(sys.executable, EXAMPLES / example / "export.py", folder)
    run = folder / "run.json"
    run.write_text(json.dumps({**json.loads(run.read_text()), **SETTINGS}))
    return folder


def count(given, folder):
    """What the executor sends and keeps for the parameters that do not train."""
    alone = folder / "counted"
    alone.mkdir()
    (alone / "lora.safetensors").symlink_to(folder / "model.safetensors")
    told = call(given.bin / "exec_imported_tests", "--gtest_filter=ExportedModels.TakeNothingForWhatDoesNotTrain", FRAZIL_EXPORTED_MODELS=str(alone))
    assert "[  PASSED  ] 1 test" in told, told
    print("counted: nothing is sent, reduced or kept for what does not train", flush=True)


def measure(given, folder, at):
    """By plan, the simulated and the measured time of a step in ms."""
    frazil, run = given.bin / "frazil", ("--run", folder / "run.json")
    profile, cluster = folder / f"profile{at}.json", folder / f"cluster{at}.json"
    call(frazil, "profile", *run, "--devices", 2, "--memory-limit", "4GiB", "--rounds", 5, "--steps", 4, "--quiet", "--out", profile,
         "--cluster-out", cluster)
    basis = ("--profile", profile, "--cluster", cluster)
    times = {}
    for name, limits in PLANS.items():
        plan, out = folder / f"{name} {at}.json", folder / f"{name} {at}"
        call(frazil, "plan", *basis, "--batch", BATCH, "--micro-batch", MICRO_BATCH, *limits, "--out", plan)
        call(frazil, "train", *run, *basis, "--plan", plan, "--quiet", "--out", out)
        phase = json.loads(call(frazil, "report", out, "--json", "--out", out / "report.html"))["runs"][0]["phases"][0]
        times[name] = phase["predicted_step_ns"] / 1e6, phase["measured_step_ns"] / 1e6
    return times


def tell(name, model, rounds):
    ratios = [measured / simulated for simulated, measured in (times[name] for times in rounds)]
    measured = statistics.median(times[name][1] for times in rounds)
    low, high = min(ratios), max(ratios)
    print(f"{model:<10}{name:<12}{measured:8.1f} ms a step, measured / simulated {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f})", flush=True)
    return measured


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=ROOT / "build/bin", help="folder of the programs, default %(default)s")
    parser.add_argument("--reviews", type=Path, help="what examples/sentiment/fetch.py left, default: fetched anew")
    parser.add_argument("--rounds", type=int, default=3, help="default %(default)s")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        if given.reviews is None:
            given.reviews = place / "fetched"
            call(sys.executable, EXAMPLES / "sentiment/fetch.py", given.reviews)
        folders = {"adapters": prepare(given.reviews, place / "adapters", "lora"), "all": prepare(given.reviews, place / "all", "sentiment")}
        count(given, folders["adapters"])
        rounds = {model: [] for model in folders}
        for at in range(given.rounds):
            for model, folder in folders.items():
                rounds[model].append(measure(given, folder, at))
        for plan in PLANS:
            alone, whole = (tell(plan, model, rounds[model]) for model in folders)
            print(f"{'':<10}{plan:<12}{alone / whole:8.3f} x the time of a step in which all of it trains", flush=True)


if __name__ == "__main__":
    main()
