#!/usr/bin/env python3
# `train` without --plan runs what `plan` ranks first for the same files, with the same --schedules.
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from training import Training, one_line, tell  # noqa: E402

QUESTIONS = ([], ["--schedules", "gpipe"], ["--schedules", "zb-h1,interleaved-1f1b"], ["--schedules", "zb-v"])


def decisions(path):
    plan = json.loads(path.read_text())
    return {key: plan[key] for key in ("pipelines", "schedule", "micro_batch_size", "batch_size", "mask", "reduction")}


def check():
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        hashes = set()
        for number, question in enumerate(QUESTIONS):
            planned = training.run("plan", *"--profile model.json --cluster cluster.json --batch 16 --micro-batch 4".split(),
                                   "--out", f"{number}.json", *question)
            trained = training.train("--steps", "3", "--out", f"run{number}", "--json", *question)
            for ended in (planned, trained):
                if ended.returncode:
                    return "", f"{' '.join(ended.args[1:3])} {question} exits {ended.returncode}: {one_line(ended.stderr)}"
            hashes.add(json.loads(trained.stdout)["state_hash"])
            kept = sorted((training.folder / f"run{number}").glob("phase-*/plan.json"))
            if not kept:
                return "", "the run keeps no plan"
            asked, ran = decisions(training.folder / f"{number}.json"), decisions(kept[0])
            if asked != ran:
                return "", f"with {question or 'no flags'} plan says {asked['schedule']} on {len(asked['pipelines'])} " \
                    f"pipelines, and train runs {ran['schedule']} on {len(ran['pipelines'])}"
        if len(hashes) != 1:
            return "", f"the plans give {len(hashes)} different weights"
        refused = training.train("--steps", "3", "--schedules", "search")
        if refused.returncode != 2:
            return "", f"train --schedules search exits {refused.returncode}"
        return f"{len(QUESTIONS)} questions: train runs what plan ranks first, and the weights are equal", ""


sys.exit(tell("p15", check))
