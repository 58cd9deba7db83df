#!/usr/bin/env python3
# No flipped bit of the step journal loses a run: it goes on to the same weights, and the damaged journal is kept. --flips N tries N bits.
import argparse
import pathlib
import random
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from training import Training, one_line, tell  # noqa: E402

STEPS = 33
RUN = f"--checkpoint-every 8 --steps {STEPS} --json".split()


def weight_hash(answer):
    place = answer.find('"state_hash"')
    return answer[place:].splitlines()[0] if place >= 0 else "none"


def flip(data, bit):
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def make_crashed(training):
    """A run of some steps that ended by a crash: its last record stands behind its newest checkpoint."""
    whole = training.train("--out", "whole", *RUN)
    if whole.returncode:
        return "", f"train exits {whole.returncode}: {one_line(whole.stderr)}"
    stopped = training.folder / "crashed"
    shutil.copytree(training.folder / "whole", stopped)
    (stopped / "trace.jsonl").unlink()
    newest = sorted((stopped / "checkpoints").glob("step-*.safetensors"))
    newest[-1].unlink()  # the last step is done again
    return weight_hash(whole.stdout), ""


def check_flips(flips, seed):
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        wanted, complaint = make_crashed(training)
        if complaint:
            return "", complaint
        journal = training.folder / "crashed/checkpoints/steps.journal"
        data = journal.read_bytes()
        draw = random.Random(seed)
        bits = [200 * 8 + 1, *(draw.randrange(8 * len(data)) for _ in range(flips - 1))]
        kept = 0
        for bit in bits:
            place = training.folder / "try"
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(training.folder / "crashed", place)
            damaged = flip(data, bit)
            (place / "checkpoints/steps.journal").write_bytes(damaged)
            ended = training.run("train", "--resume", "try", "--json", "--quiet")
            what = f"bit {bit} (byte {bit // 8} of {len(data)}, seed {seed})"
            if ended.returncode or weight_hash(ended.stdout) != wanted:
                return "", f"{what}: exit {ended.returncode}, {weight_hash(ended.stdout)}: {one_line(ended.stderr)}"
            aside = list((place / "checkpoints").glob("steps.journal.damaged-*"))
            is_last = bit // 8 >= len(data) - 64
            if not is_last and [path.read_bytes() for path in aside] != [damaged]:
                return "", f"{what}: the damaged journal is not kept"
            kept += bool(aside)
        return f"{len(bits)} flipped bits, 0 runs lost, {kept} damaged journals kept (seed {seed})", ""


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--flips", type=int, default=24)
    arguments.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    given = arguments.parse_args()
    return tell("d1", lambda: check_flips(given.flips, given.seed))


sys.exit(main())
