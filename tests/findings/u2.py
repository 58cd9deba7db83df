#!/usr/bin/env python3
# A folder of --out belongs to one living run, and no run in it is lost without --force, which replaces all of it.
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from training import Training, one_line, stop, tell  # noqa: E402


def refuses(training, flags, words):
    """What is wrong with how a run is protected from `train` with these flags; empty if nothing is."""
    before = training.texts("out")
    again = training.train("--out", "out", "--steps", "4", *flags)
    if again.returncode != 2:
        return f"train {' '.join(flags)} into a run exits {again.returncode}"
    if training.texts("out") != before:
        return "a refused train has changed files"
    missing = [word for word in words if word not in again.stderr]
    if missing or again.stderr.count("\n") != 1:
        return f"the refusal lacks {missing}: {one_line(again.stderr)}"
    return ""


def check():
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        for durable in ([], ["--checkpoint-every", "3"]):
            first = training.train("--out", "out", "--steps", "8", *durable, "--force") if durable else \
                training.train("--out", "out", "--steps", "8")
            if first.returncode:
                return "", f"train exits {first.returncode}: {one_line(first.stderr)}"
            for flags in ([], ["--checkpoint-every", "2"]):
                complaint = refuses(training, flags, ["out: ", "a finished run of 8 steps", "--resume", "--force"])
                if complaint:
                    return "", complaint
        complaint = refuses(training, ["--force", "--plan", "absent.json"], ["absent.json"])
        if complaint:
            return "", complaint
        new = training.train("--out", "out", "--steps", "4", "--force")
        if new.returncode:
            return "", f"--force exits {new.returncode}: {one_line(new.stderr)}"
        training.train("--out", "alone", "--steps", "4")
        names = [sorted(path.split("/", 1)[1] for path in training.texts(folder)) for folder in ("out", "alone")]
        if names[0] != names[1]:
            return "", f"--force leaves {sorted(set(names[0]) ^ set(names[1]))} of the run before"
        living = training.start("--out", "live")
        second = training.train("--out", "live", "--steps", "4", "--force")
        code, _, _ = stop(living)
        if second.returncode != 2 or second.stderr.count("\n") != 1 or code != 130:
            return "", f"a second train in a living folder exits {second.returncode}: {one_line(second.stderr)}"
        return "finished and living runs are refused with exit code 2; --force leaves nothing of the run before", ""


sys.exit(tell("u2", check))
