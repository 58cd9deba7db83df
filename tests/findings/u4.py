#!/usr/bin/env python3
# `train --resume FOLDER` needs no other flag, also to give a finished run more steps; what it cannot do is refused; a stopped run says what it kept.
import json
import pathlib
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from training import Training, one_line, stop, tell  # noqa: E402


def check():
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        for folder in ("mistyped", "."):
            ended = training.run("train", "--resume", folder)
            if ended.returncode != 2 or "run" not in ended.stderr or (training.folder / "mistyped").exists():
                return "", f"--resume {folder} exits {ended.returncode}: {one_line(ended.stderr)}"
        (training.folder / "empty").mkdir()
        every_flag = "--run run.json --profile model.json --cluster cluster.json --checkpoint-every 5 --quiet".split()
        ended = training.run("train", *every_flag, "--resume", "--out", "empty", "--steps", "3")
        if ended.returncode != 2 or any((training.folder / "empty").iterdir()):
            return "", f"--resume of an empty folder exits {ended.returncode} and leaves files"
        whole = training.train("--out", "whole", "--json", "--seed", "7")
        living = training.start("--out", "out", "--checkpoint-every", "50", "--seed", "7")
        code, _, said = stop(living, signal.SIGTERM)
        if code != 143 or "checkpoint of step" not in said or "--resume" not in said:
            return "", f"SIGTERM with checkpoints: exit {code}, {one_line(said) or 'nothing said'}"
        short = training.train("--out", "short", "--checkpoint-every", "8", "--seed", "7", "--steps", "20", "--json")
        more = training.run("train", "--resume", "short", "--steps", "30", "--json", "--quiet")
        again = training.run("train", "--resume", "short", "--json", "--quiet")
        if more.returncode or again.returncode or short.returncode or whole.returncode:
            return "", f"more steps for a finished run: exit {more.returncode}, {one_line(more.stderr)}"
        answers = [json.loads(run.stdout) for run in (short, more, again)]
        if answers[1]["resumed_from_step"] != 20 or answers[1]["state_hash"] != answers[2]["state_hash"] \
                or answers[0]["state_hash"] == answers[1]["state_hash"]:
            return "", f"30 steps after 20: {answers[1]}"
        for flags in (["--seed", "8"], ["--steps", "12"], ["--no-freeze"]):
            other = training.run("train", "--resume", "short", *flags)
            if other.returncode != 2 or other.stderr.count("\n") != 1:
                return "", f"--resume {' '.join(flags)} exits {other.returncode}: {one_line(other.stderr)}"
        for flags, words in ((["--out", "mute"], ["weights.safetensors", "no checkpoint"]), ([], ["nothing"])):
            living = training.start(*flags)
            code, _, said = stop(living)
            if code != 130 or any(word not in said for word in words):
                return "", f"Ctrl-C without checkpoints: exit {code}, {one_line(said) or 'nothing said'}"
        return "--resume FOLDER alone goes on and adds steps; absent, empty and other runs are refused; Ctrl-C says what is kept", ""


sys.exit(tell("u4", check))
