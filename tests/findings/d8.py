#!/usr/bin/env python3
# One flipped bit of events.jsonl costs its own lines, is told of, and the damaged file is kept; all other events stay.
import pathlib
import random
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from training import Training, one_line, tell  # noqa: E402

FLIPS = 16


def count_steps(path):
    return path.read_text(errors="replace").count('"kind":"step"')


def check():
    seed = random.randrange(1 << 30)
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        # A run that has ended is given more steps, so all that its log has comes before them.
        begun = training.train("--out", "begun", "--checkpoint-every", "8", "--steps", "32")
        if begun.returncode:
            return "", f"train exits {begun.returncode}: {one_line(begun.stderr)}"
        data = (training.folder / "begun/events.jsonl").read_bytes()
        told = 0
        bits = [8 * (data.index(b'"kind":"step"') + 9), *(draw.randrange(8 * len(data)) for _ in range(FLIPS - 1))]
        for bit in bits:
            place = training.folder / "try"
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(training.folder / "begun", place)
            damaged = bytearray(data)
            damaged[bit // 8] ^= 1 << bit % 8
            (place / "events.jsonl").write_bytes(damaged)
            ended = training.run("train", "--resume", "try", "--steps", "36", "--quiet")
            what = f"bit {bit} (seed {seed})"
            if ended.returncode:
                return "", f"{what}: exit {ended.returncode}: {one_line(ended.stderr)}"
            steps = count_steps(place / "events.jsonl")
            if steps < 36 - 2:
                return "", f"{what}: the log has {steps} of 36 steps: {one_line(ended.stderr) or 'not a word'}"
            said = "damaged lines of the event log" in ended.stderr
            kept = [path.read_bytes() for path in place.glob("events.jsonl.damaged-*")]
            if steps < 36 and not said:
                return "", f"{what}: {36 - steps} steps are gone without a word"
            if said and kept != [bytes(damaged)]:
                return "", f"{what}: the damaged log is not kept"
            told += said
        return f"{len(bits)} flipped bits: at most 2 steps lost, {told} told of and kept (seed {seed})", ""


sys.exit(tell("d8", check))
