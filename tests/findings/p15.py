#!/usr/bin/env python3
# `train` without --plan runs what `plan` ranks first for the same files, with the same --schedules: when it begins, and, with "replan": "greedy",
# when blocks freeze. (Without that word a run that freezes follows `plan --forecast`: tests/exec/verbs/planned_runs_test.cpp.)
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from training import Training, one_line, tell  # noqa: E402

QUESTIONS = ([], ["--schedules", "gpipe"], ["--schedules", "zb-h1,interleaved-1f1b"], ["--schedules", "zb-v"])

MASKS = {0: "1111", 6: "0111", 12: "0011"}  # by the step before which a trace freezes
REPLANNED = ([], ["--schedules", "gpipe,1f1b"], ["--schedules", "zb-h1,zb-v"])
LIMIT = 150_000  # bytes of a device: the whole model fits once its first half is frozen


def decisions(path):
    plan = json.loads(path.read_text())
    return {key: plan[key] for key in ("pipelines", "schedule", "micro_batch_size", "batch_size", "mask", "reduction")}


def plan_first(training, question, mask, out):
    words = "--profile slow.json --cluster tight.json --batch 16 --micro-batch 4 --mask".split()
    return training.run("plan", *words, mask, "--out", out, *question)


def write_slow(training):
    """A profile whose layers take a second each, so that no transition costs what a better plan saves, little memory, and a run
    that a trace freezes."""
    profile = json.loads((training.folder / "model.json").read_text())
    for layer in profile["layers"]:
        layer["update_ns"] = 0
        for cost in layer["costs"]:
            cost.update({key: 10**9 for key in cost if key.endswith("_ns")})
    profile["layers"][0]["costs"][0]["backward_input_ns"] = 0
    cluster = json.loads((training.folder / "cluster.json").read_text())
    for device in cluster["devices"]:
        device["memory_limit_bytes"] = LIMIT
    head = {"format": "frazil.freeze_trace", "version": 1, "model_hash": "", "blocks": profile["blocks"], "steps": 18, "open": False,
            "batch_size": 16, "provenance": {}}
    masks = [{"step": step, "kind": "mask", "mask": mask} for step, mask in MASKS.items()]
    (training.folder / "slow.json").write_text(json.dumps(profile))
    (training.folder / "tight.json").write_text(json.dumps(cluster))
    (training.folder / "masks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (head, *masks)))
    training.write_run("frozen.json", epochs=5, replan="greedy", freeze={"policy": {"kind": "trace", "path": "masks.jsonl"}})


def check_replanned(training):
    """Plans of phases by question, and what is wrong."""
    write_slow(training)
    inputs = "--run frozen.json --profile slow.json --cluster tight.json --steps 18 --quiet --json".split()
    names, hashes = set(), set()
    for number, question in enumerate(REPLANNED):
        trained = training.run("train", *inputs, "--out", f"frozen{number}", *question)
        if trained.returncode:
            return "", f"train {question} exits {trained.returncode}: {one_line(trained.stderr)}"
        answer = json.loads(trained.stdout)
        hashes.add(answer["state_hash"])
        if [phase["mask"] for phase in answer["phases"]] != list(MASKS.values()):
            return "", f"the phases have the masks {[phase['mask'] for phase in answer['phases']]}"
        for phase, mask in enumerate(MASKS.values()):
            planned = plan_first(training, question, mask, "asked.json")
            if planned.returncode:
                return "", f"plan --mask {mask} {question} exits {planned.returncode}: {one_line(planned.stderr)}"
            asked = decisions(training.folder / "asked.json")
            ran = decisions(training.folder / f"frozen{number}/phase-{phase}/plan.json")
            if asked != ran:
                return "", f"with {question or 'no flags'} and mask {mask} plan says {asked['schedule']} on {len(asked['pipelines'])} " \
                    f"pipelines, and train runs {ran['schedule']} on {len(ran['pipelines'])}"
            if phase > 0 and not question:
                names.add(ran["schedule"]["name"])
    kept = training.run("train", *inputs, "--keep-plan")
    hashes.add(json.loads(kept.stdout)["state_hash"] if kept.returncode == 0 else one_line(kept.stderr))
    if len(hashes) != 1:
        return "", f"plans that change at freezing give {hashes}"
    if names <= {"gpipe", "1f1b"}:
        return "", f"the case shows nothing: without flags plans of frozen phases are {names}"
    return f"plans of frozen phases, {', '.join(sorted(names))} without flags, are those that plan ranks first too", ""


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
        seen, complaint = check_replanned(training)
        if complaint:
            return "", complaint
        return f"{len(QUESTIONS)} questions: train runs what plan ranks first, and the weights are equal; {seen}", ""


sys.exit(tell("p15", check))
