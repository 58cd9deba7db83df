#!/usr/bin/env python3
"""The encoder of examples/sentiment, fine-tuned from export to predictions as its page says.

sentiment.py [--twin]: with --twin on 100 sentences for two epochs, of which the second reads frozen features and is killed and resumed; else for
3 seeds as the example has it, each beside PyTorch's own loop over the same samples. Runs under the Python of tests/interop/setup_torch.sh.
FRAZIL_BIN is the folder of the programs, FRAZIL_REVIEWS where fetched packages are kept. Exit code 0: all held; 1: something did not; 77:
something is not there.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TREE = Path(__file__).resolve().parents[3]
EXAMPLE = TREE / "examples/sentiment"
PROGRAM = Path(os.environ.get("FRAZIL_BIN", TREE / "build/bin")) / "frazil"
SKIPPED, FAILED = 77, 1
SEEDS = (0, 1, 2)
LEAST_MEAN, MOST_APART = 0.80, 0.015
MICRO_BATCH = 8
EPOCH_OF_TWIN = 4  # steps over 100 sentences
INPUTS = ("--run", "run.json", "--profile", "profile.json", "--cluster", "cluster.json", "--quiet")


class Absent(Exception):
    """What is not there."""


def call(*words, folder=None):
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, timeout=3000)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))} exits {done.returncode}: {done.stdout[-500:]}{done.stderr[-2000:]}")
    return done.stdout


def fetch(folder):
    """The packages of the example, once."""
    if not (folder / "reviews.txt").exists():
        done = subprocess.run([sys.executable, EXAMPLE / "fetch.py", folder], capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise Absent(f"the packages of examples/sentiment cannot be fetched: {(done.stderr or done.stdout).strip().splitlines()[-1]}")


def prepare(place, folder, seed, *sizes):
    (folder / "model").symlink_to(place / "model")
    (folder / "reviews.txt").symlink_to(place / "reviews.txt")
    call(sys.executable, EXAMPLE / "prepare.py", folder, *sizes)
    call(sys.executable, EXAMPLE / "export.py", folder, "--seed", seed)


def change_run(folder, **settings):
    path = folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


def measure(folder):
    call(PROGRAM, "profile", "--run", "run.json", "--devices", 2, "--memory-limit", "4GiB", "--rounds", 1, "--steps", 2, "--quiet",
         "--out", "profile.json", "--cluster-out", "cluster.json", folder=folder)


def train(folder, out, *flags):
    return json.loads(call(PROGRAM, "train", *INPUTS, "--json", "--out", out, *flags, folder=folder))


def newest_checkpoint(folder):
    return max((int(path.stem.removeprefix("step-")) for path in folder.glob("checkpoints/step-*.safetensors")), default=0)


def kill_and_resume(folder, out, step):
    """A run that is killed when it has written a checkpoint of this step or a later one goes on to its end."""
    run = subprocess.Popen([PROGRAM, "train", *INPUTS, "--out", out, "--checkpoint-every", "2"], cwd=folder, stdout=subprocess.DEVNULL)
    end = time.monotonic() + 300
    while newest_checkpoint(folder / out) < step and time.monotonic() < end and run.poll() is None:
        time.sleep(0.05)
    run.send_signal(signal.SIGKILL)
    code = run.wait()
    assert code == -signal.SIGKILL, f"a run that was to be killed in the middle exits {code}"
    return json.loads(call(PROGRAM, "train", "--resume", out, "--quiet", "--json", folder=folder))


def evaluate(folder, out):
    """(loss, accuracy) over the test samples, from weights that are loaded in PyTorch."""
    import torch
    import transformers

    import frazil

    torch.set_num_threads(1)
    model = transformers.BertForSequenceClassification.from_pretrained(folder / "model", num_labels=2)
    frazil.load_weights(model, folder / out)
    files = frazil.export_predictions(model, folder / "test.safetensors", folder / "predictions.safetensors", batch=MICRO_BATCH)
    found = frazil.read_tensors(files.files[0])
    logits, labels = found["logits"].torch(), found["labels"].torch()
    parts = zip(logits.split(MICRO_BATCH), labels.split(MICRO_BATCH))
    losses = [torch.nn.functional.cross_entropy(some, own).item() * len(own) for some, own in parts]
    return sum(losses) / len(labels), (logits.argmax(1) == labels).sum().item() / len(labels)


def expect_same_predictions(folder, out, answer):
    loss, accuracy = evaluate(folder, out)
    assert (loss, accuracy) == (answer["loss"], answer["accuracy"]), f"PyTorch finds {loss}, {accuracy} where the run told {answer}"


def check_twin(place):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(place, folder, 0, "--train", 100, "--test", 60)
        policy = {"kind": "alpha", "alpha": 0.333, "start_step": 2, "interval_steps": 100}  # two layers of six
        change_run(folder, epochs=2, freeze={"policy": policy}, cache={"kind": "on", "admission": "always"})
        measure(folder)
        whole = train(folder, "whole")
        assert whole["cache"]["found"] > 0, "the second epoch reads what the first has stored"
        resumed = kill_and_resume(folder, "killed", step=EPOCH_OF_TWIN + 1)
        change_run(folder, freeze={"policy": policy}, cache={"kind": "off"})
        for name, answer in {"after a kill": resumed, "without a cache": train(folder, "uncached")}.items():
            assert answer["state_hash"] == whole["state_hash"], f"{answer['state_hash']} {name}, {whole['state_hash']} else"
        expect_same_predictions(folder, "killed", resumed)
        call(PROGRAM, "check", "killed", folder=folder)
        return f"frozen, cached, killed and resumed with equal bits; PyTorch finds loss {whole['loss']:.4f} and accuracy {whole['accuracy']:.2%} too"


def check_seed(place, seed):
    """The accuracies of a run that freezes and caches, and of PyTorch's loop."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(place, folder, seed)
        measure(folder)
        answer = train(folder, "trained")
        expect_same_predictions(folder, "trained", answer)
        told = call(sys.executable, EXAMPLE / "train_pytorch.py", folder, "--freeze", "--seed", seed)
        stock = float(re.search(r"accuracy ([0-9.]+)%", told).group(1)) / 100
        print(f"seed {seed}: {answer['accuracy']:.2%} in {answer['training_time_ns'] / 1e9:.0f} s; PyTorch {stock:.2%}", flush=True)
        return answer["accuracy"], stock


def check_seeds(place):
    pairs = [check_seed(place, seed) for seed in SEEDS]
    mean = sum(own for own, _ in pairs) / len(pairs)
    assert mean >= LEAST_MEAN, f"mean accuracy {mean:.2%}, expected {LEAST_MEAN:.0%} or more"
    for own, stock in pairs:
        assert abs(own - stock) <= MOST_APART, f"{own:.2%} where PyTorch has {stock:.2%}, expected at most {MOST_APART:.1%} apart"
    return f"mean accuracy {mean:.2%}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--twin", action="store_true")
    given = parser.parse_args()
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401

        if not PROGRAM.with_name("frazil-train").exists():
            raise Absent(f"no {PROGRAM.with_name('frazil-train')}")
        place = Path(os.environ.get("FRAZIL_REVIEWS", TREE / "build/reviews")).resolve()
        fetch(place)
        print("sentiment.py:", check_twin(place) if given.twin else check_seeds(place))
    except ImportError as error:
        print(f"skipped: {error}; tests/interop/setup_torch.sh fetches PyTorch and transformers")
        return SKIPPED
    except Absent as absent:
        print(f"skipped: {absent}")
        return SKIPPED
    except AssertionError as error:
        print(f"sentiment.py: {error}")
        return FAILED
    return 0


sys.exit(main())
