#!/usr/bin/env python3
"""tune.py FOLDER: how good the encoder becomes by other settings, on lines that neither train nor test it.

FOLDER holds what prepare.py --validation N and export.py left, and a profile of it (profile.json and cluster.json, by the command that export.py
prints). The run configuration (--run) is trained with every epoch count, learning rate and seed that is named, evaluated on
FOLDER/validation.safetensors, and written as a row of a table; rows that the table has of the same configuration, model and data (one hash,
`inputs`) are not trained again. Policies of freezing are named by their JSON text; without one nothing freezes. What two settings differ by is
told by the rows of the same seeds.
"""

import argparse
import csv
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import runs  # noqa: E402

KEYS = ("epochs", "learning_rate", "policy", "seed", "inputs")
COLUMNS = (*KEYS, "accuracy", "loss")
PROGRAM = Path(os.environ.get("FRAZIL_BIN", "build/bin")) / "frazil"


def numbers(kind, least):
    """A reader of a comma list of numbers above `least`."""

    def read(text):
        try:
            found = [kind(word) for word in text.split(",")]
        except ValueError:
            found = []
        if not found or min(found) <= least:
            raise argparse.ArgumentTypeError(f"found {text}, expected numbers above {least}, as 2,3")
        return found

    return read


def policy(text):
    """One spelling of a policy, so that it names its rows."""
    return text and json.dumps(json.loads(text), sort_keys=True)


def read_table(path):
    """Rows by setting, seed and inputs."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {(int(row["epochs"]), float(row["learning_rate"]), row["policy"], int(row["seed"]), row["inputs"]): row for row in csv.DictReader(file)}


def write_table(path, rows):
    part = path.with_name(path.name + ".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows[key] for key in sorted(rows))
    part.replace(path)


def configure(run, epochs, rate, freeze, seed):
    """The run configuration with these settings; all of it is evaluated once, after its last epoch."""
    made = {key: value for key, value in run.items() if key not in ("freeze", "cache")}
    made |= {"epochs": epochs, "evaluation_epochs": epochs, "seed": seed}
    made["data"] = made["data"] | {"test": "validation.safetensors"}
    made["optimizer"] = made["optimizer"] | {"learning_rate": rate}
    if freeze:
        made |= {"freeze": {"policy": json.loads(freeze)}, "cache": {"kind": "on"}}
    return made


def hash_inputs(folder, run):
    """What decides a row besides its setting and seed: the rest of the configuration, the model and the data. A file that is absent is left to `frazil`."""
    varied = ("epochs", "evaluation_epochs", "seed", "freeze", "cache", "deadline_seconds")
    kept = {key: value for key, value in run.items() if key not in varied}
    kept["optimizer"] = {key: value for key, value in run["optimizer"].items() if key != "learning_rate"}
    digest = hashlib.sha256(json.dumps(kept, sort_keys=True).encode())
    for name in (run["model"]["path"], run["data"]["train"], "validation.safetensors"):
        path = folder / name
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.hexdigest()[:16]


def train(folder, run):
    """Accuracy and loss of the trained model, as `frazil train --json` tells them."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = folder / (Path(place).name + ".json")
        path.write_text(json.dumps(run), encoding="utf-8")
        try:
            words = ("train", "--run", path, "--profile", folder / "profile.json", "--cluster", folder / "cluster.json")
            done = subprocess.run([PROGRAM, *words, "--out", f"{place}/out", "--quiet", "--json"], capture_output=True, text=True)
        finally:
            path.unlink()
    if done.returncode:
        raise SystemExit(f"tune.py: {done.stderr.strip()}")
    answer = json.loads(done.stdout)
    return answer["accuracy"], answer["loss"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--run", type=Path, default=Path("examples/ablation/reviews.json"), help="run configuration whose settings are varied")
    parser.add_argument("--epochs", type=numbers(int, 0), required=True, help="as in 2,3,6")
    parser.add_argument("--rates", type=numbers(float, 0), required=True, help="as in 5e-5,1e-4")
    parser.add_argument("--seeds", type=numbers(int, -1), required=True, help="as in 21,22,23,24")
    parser.add_argument("--policy", type=policy, default="", help='as in {"kind": "alpha", "alpha": 0.5, "start_epoch": 2}; without it nothing freezes')
    parser.add_argument("--table", type=Path, help="default FOLDER/tuning.csv")
    given = parser.parse_args()
    path = given.table or given.folder / "tuning.csv"
    if not given.run.is_file():
        parser.error(f"found no {given.run}, expected a run configuration")
    runs.require(parser, given.folder / "profile.json", "frazil profile, by the command that export.py prints,")
    run = json.loads(given.run.read_text(encoding="utf-8"))
    rows = read_table(path)
    inputs = hash_inputs(given.folder, run)
    for epochs in given.epochs:
        for rate in given.rates:
            found = []
            for seed in given.seeds:
                key = (epochs, rate, given.policy, seed, inputs)
                if key not in rows:
                    accuracy, loss = train(given.folder, configure(run, epochs, rate, given.policy, seed))
                    rows[key] = dict(zip(COLUMNS, (*key, f"{accuracy:.4f}", f"{loss:.4f}")))
                    write_table(path, rows)
                found.append(100 * float(rows[key]["accuracy"]))
            print(f"{epochs} epochs at {rate:g}: {', '.join(f'{each:.2f}' for each in found)} %, mean {statistics.mean(found):.2f}", flush=True)


if __name__ == "__main__":
    main()
