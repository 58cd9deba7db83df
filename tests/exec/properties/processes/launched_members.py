#!/usr/bin/env python3
"""A training with clipping, dropout, short batches and freezing has the weights of one process under torchrun, elastic torchrun and mpirun.

Like launchers.py in a network namespace of its own. Ends with code 77, and a reason, where neither launcher can be had.

    launched_members.py --python PYTHON
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[4]
sys.path[:0] = [str(TREE / "tests/findings/support"), str(TREE / "tests/exec/links/joining")]
from launchers import elastic_agent, enter_namespace, raise_loopback, run  # noqa: E402
from training import FRAZIL, INPUTS, MODEL, Absent, Failed, Training, one_line, tell  # noqa: E402

# 60 samples in batches of 16: the last batch of an epoch lacks a micro-batch.
CHANGES = {
    "model": {**MODEL, "dropout": 0.1},
    "data": {"kind": "synthetic", "train_samples": 60, "test_samples": 16, "seed": 3},
    "optimizer": {"clip_norm": 0.5},
    "epochs": 40,
}
TRAIN = ["train", *INPUTS, "--json"]


def launches(options):
    """Commands by name, all of which are begun at once."""
    found = {}
    if pathlib.Path(options.python).exists():
        torchrun = [options.python, "-m", "torch.distributed.run", "--standalone", "--no-python", "--nproc-per-node=2"]
        found["torchrun"] = [[*torchrun, "--", FRAZIL, *TRAIN]]
        found["torchrun, zb-h1"] = [[*torchrun, "--", FRAZIL, *TRAIN, "--schedules", "zb-h1"]]
        options.program = FRAZIL
        agent = elastic_agent(options, *TRAIN)
        found["elastic torchrun, two agents"] = [agent, agent]
    if shutil.which("mpirun"):
        found["mpirun"] = [["mpirun", "--oversubscribe", "-np", "4", FRAZIL, *TRAIN]]
    return found


def check(options):
    commands = launches(options)
    if not commands:
        raise Absent(f"no {options.python} and no mpirun")
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        training.write_run("run.json", **CHANGES)
        made = training.run("profile", *"--run run.json --devices 4 --rounds 1 --steps 2 --memory-limit 1GiB --out model.json "
                            "--cluster-out cluster.json --quiet".split())
        if made.returncode:
            raise Failed(f"profile exits {made.returncode}: {one_line(made.stderr)}")
        alone = training.train("--json")
        if alone.returncode:
            raise Failed(f"one process: exit {alone.returncode}: {one_line(alone.stderr)}")
        expected = json.loads(alone.stdout)["state_hash"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "OMPI_", "PMI", "TORCHELASTIC_"))}
        environment.update(XDG_RUNTIME_DIR=name, OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        os.chdir(name)
        for launcher, begun in commands.items():
            text = run(begun, environment)
            hashes = re.findall(r'"state_hash": *"([0-9a-f]+)"', text)
            if hashes != [expected]:
                return "", f"{launcher}: weights {hashes}, in one process {expected}: {one_line(text)[-300:]}"
    return f"the weights of one process under {'; '.join(commands)}", ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", required=True)
    parser.add_argument("--inside", action="store_true")
    options = parser.parse_args()
    if not options.inside:
        enter_namespace()
    raise_loopback()
    return tell("launched members", lambda: check(options))


sys.exit(main())
