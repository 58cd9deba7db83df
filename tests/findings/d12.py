#!/usr/bin/env python3
# The journal has the hash of the weights at every checkpoint, and `frazil check` finds any flipped bit of a run by itself.
import json
import pathlib
import random
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from journal import read_lines, words_of, xxh64  # noqa: E402
from training import Training, one_line, tell  # noqa: E402

STEPS = 24
FLIPS = 12


def data_of(path):
    data = path.read_bytes()
    return data[8 + int.from_bytes(data[:8], "little"):]


def check():
    seed = random.randrange(1 << 30)
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        ended = training.train("--out", "run", "--checkpoint-every", "8", "--steps", str(STEPS))
        if ended.returncode:
            return "", f"train exits {ended.returncode}: {one_line(ended.stderr)}"
        run = training.folder / "run"
        lines = [words_of(body) for body in read_lines((run / "checkpoints/steps.journal").read_bytes())[1:]]
        weights = {step: hash for step, word, hash in lines if word == "weights"}
        if sorted(weights) != [8, 16, 24]:
            return "", f"the journal has hashes of the weights after steps {sorted(weights)}"
        if f"{xxh64(data_of(run / 'weights.safetensors')):016x}" != weights[STEPS]:
            return "", "the last hash is not that of weights.safetensors"
        said = training.run("check", "run", "--json")
        answer = json.loads(said.stdout) if said.stdout else {}
        if said.returncode or not answer.get("agrees") or answer["steps"] != STEPS:
            return "", f"check of a whole run exits {said.returncode}: {one_line(said.stdout + said.stderr)}"
        if weights[STEPS] != answer["checkpoints"][-1]["weights"]:
            return "", "check names other weights than the journal"
        found = 0
        files = ["checkpoints/steps.journal", "checkpoints/kernels.json", "checkpoints/run.json",
                 f"checkpoints/step-{STEPS:012}.safetensors", "weights.safetensors"]
        for file in files:
            data = (run / file).read_bytes()
            for _ in range(FLIPS):
                bit = draw.randrange(8 * (len(data) - 64))
                place = training.folder / "try"
                shutil.rmtree(place, ignore_errors=True)
                shutil.copytree(run, place)
                damaged = bytearray(data)
                damaged[bit // 8] ^= 1 << bit % 8
                (place / file).write_bytes(bytes(damaged))
                said = training.run("check", "try")
                # Spaces and names of a JSON text may change without another meaning.
                is_loose = file.endswith(".json") or (file == "weights.safetensors" and bit // 8 < 4096)
                if said.returncode != 4 and not is_loose:
                    return "", f"{file}, bit {bit} (seed {seed}): check exits {said.returncode}: {one_line(said.stdout)}"
                found += said.returncode == 4
        # A loss that is another in the events.
        shutil.rmtree(training.folder / "try")
        shutil.copytree(run, training.folder / "try")
        log = training.folder / "try/events.jsonl"
        text = log.read_text()
        place = text.index('"loss":', text.index('"kind":"step"')) + 9
        log.write_text(text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1:])
        said = training.run("check", "try")
        if said.returncode != 4 or "in the journal" not in said.stdout:
            return "", f"another loss in the events: check exits {said.returncode}: {one_line(said.stdout)}"
        absent = training.run("check", "nowhere")
        if absent.returncode != 2:
            return "", f"check of no folder exits {absent.returncode}"
        return f"{found} of {FLIPS * len(files)} flipped bits and another loss found (seed {seed})", ""


sys.exit(tell("d12", check))
