#!/usr/bin/env python3
# The journal has the hash of the weights at every checkpoint, and `frazil check` finds a flipped bit of whatever decides a run's weights.
"""Bits are flipped in every file that check looks at. A flip in journal, checkpoints and tensors is found. One in a JSON text is found,
or is harmless, since the text parses to an equal value, or changes what nothing else in the folder tells: in kernels.json and run.json
nothing, in events.jsonl all but steps, losses, masks and checkpoints, in trace.jsonl all but model and length, in a plan what it says
beyond its form and its model, in weights.safetensors the model's name. Each of these files, taken away, is missed, but for trace.jsonl,
without which the run has not ended, and the newest checkpoint, whose weights are in weights.safetensors too."""
import collections
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
FLIPS = 12  # of a file of bytes
TORN = 64  # bytes at the end of a journal, which may look like the torn line of a crash
TEXT_FLIPS = 60  # of a JSON text


def data_of(path):
    data = path.read_bytes()
    return data[8 + int.from_bytes(data[:8], "little"):]


def parse(data):
    """The value of a JSON text, of which members that are told twice and numbers beyond JSON are none."""
    def take(pairs):
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a member twice")
        return dict(pairs)

    def refuse(word):
        raise ValueError(word)
    return json.loads(data.decode(), object_pairs_hook=take, parse_constant=refuse)


def parse_lines(data):
    if data[-1:] != b"\n":
        raise ValueError("a torn line")
    return [parse(line) for line in data[:-1].split(b"\n")]


def parse_header(data):
    size = int.from_bytes(data[:8], "little")
    return parse(data[8:8 + size]), data[8 + size:]


def whole(value):
    return value


def told_events(lines):
    """What check compares: the model, steps with their losses and the masks in force, and checkpoints."""
    header, *events = lines
    mask, told = None, [header["model_hash"]]
    for event in events:
        if event["kind"] == "mask":
            mask = event["mask"]
        elif event["kind"] == "step":
            told.append((event["step"], event["loss"], mask))
        elif event["kind"] == "checkpoint":
            told.append(event.get("of", event["step"]))
    return told


def told_trace(lines):
    return lines[0]["model_hash"], lines[0]["steps"]


def told_plan(plan):
    return plan["format"], plan["version"], plan["model_hash"]


def told_weights(file):
    header, data = file
    metadata = header["__metadata__"]
    return {**header, "__metadata__": None}, metadata["format"], metadata["steps"], data


def list_files(run):
    """By file: how it is parsed, and the part of its value that check has to hold; none for files whose every bit counts."""
    files = {"checkpoints/steps.journal": None, f"checkpoints/step-{STEPS:012}.safetensors": None, "weights.safetensors": None,
             "checkpoints/kernels.json": (parse, whole), "checkpoints/run.json": (parse, whole), "events.jsonl": (parse_lines, told_events),
             "trace.jsonl": (parse_lines, told_trace)}
    for plan in sorted(run.glob("phase-*/plan.json")):
        files[str(plan.relative_to(run))] = (parse, told_plan)
    return files


def value_of(data, how):
    """What a text parses to, and what of that counts; None if it does not parse."""
    read, told = how
    try:
        value = read(data)
        return value, told(value)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None


def judge_unfound(data, damaged, how):
    """Why a flip need not be found, or none if it should have been."""
    before, after = value_of(data, how), value_of(damaged, how)
    if after is None or after[1] != before[1]:
        return None
    return "harmless" if after[0] == before[0] else "told by nothing else"


def check_whole(training, run):
    """A complaint about the run before anything is damaged."""
    lines = [words_of(body) for body in read_lines((run / "checkpoints/steps.journal").read_bytes())[1:]]
    weights = {step: hash for step, word, hash in lines if word == "weights"}
    if sorted(weights) != [8, 16, 24]:
        return f"the journal has hashes of the weights after steps {sorted(weights)}"
    if f"{xxh64(data_of(run / 'weights.safetensors')):016x}" != weights[STEPS]:
        return "the last hash is not that of weights.safetensors"
    said = training.run("check", "run", "--json")
    answer = json.loads(said.stdout) if said.stdout else {}
    if said.returncode or not answer.get("agrees") or answer["steps"] != STEPS:
        return f"check of a whole run exits {said.returncode}: {one_line(said.stdout + said.stderr)}"
    return "" if weights[STEPS] == answer["checkpoints"][-1]["weights"] else "check names other weights than the journal"


def check_flips(training, run, draw, counts):
    """Flips bits in each file, one at a time; returns a complaint about the first flip that should have been found."""
    place = training.folder / "try"
    for file, how in list_files(run).items():
        data, begin = (run / file).read_bytes(), 0
        parts = [(len(data), TEXT_FLIPS, how)] if how else [(len(data) - TORN * file.endswith(".journal"), FLIPS, None)]
        if file == "weights.safetensors":
            size = 8 + int.from_bytes(data[:8], "little")
            parts = [(size, TEXT_FLIPS, (parse_header, told_weights)), (len(data), FLIPS, None)]
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(run, place)
        for end, flips, how in parts:
            for _ in range(flips):
                bit = draw.randrange(8 * begin, 8 * end)
                damaged = bytearray(data)
                damaged[bit // 8] ^= 1 << bit % 8
                (place / file).write_bytes(bytes(damaged))
                said = training.run("check", "try")
                if said.returncode not in (0, 4):
                    return f"{file}, bit {bit}: check exits {said.returncode}: {one_line(said.stderr)}"
                ended = "found" if said.returncode == 4 else how and judge_unfound(data, bytes(damaged), how)
                if not ended:
                    return f"{file}, bit {bit}: check does not find it: {one_line(said.stdout)}"
                counts[ended] += 1
            begin = end
    return ""


def check_absences(training, run):
    """Takes each file away; returns a complaint about the first that is not missed."""
    files = [file for file in list_files(run) if not file.endswith(f"{STEPS:012}.safetensors") and file != "trace.jsonl"]
    for file in [*files, "phase-0"]:
        place = training.folder / "try"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(run, place)
        shutil.rmtree(place / file) if file == "phase-0" else (place / file).unlink()
        said = training.run("check", "try")
        if said.returncode != 4 or not all(part in said.stdout for part in file.split("/")):
            return f"without {file}: check exits {said.returncode}: {one_line(said.stdout + said.stderr)}"
    return ""


def check_other_loss(training, run):
    shutil.rmtree(training.folder / "try")
    shutil.copytree(run, training.folder / "try")
    log = training.folder / "try/events.jsonl"
    text = log.read_text()
    place = text.index('"loss":', text.index('"kind":"step"')) + 9
    log.write_text(text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1:])
    said = training.run("check", "try")
    if said.returncode != 4 or "in the journal" not in said.stdout:
        return f"another loss in the events: check exits {said.returncode}: {one_line(said.stdout)}"
    absent = training.run("check", "nowhere")
    return f"check of no folder exits {absent.returncode}" if absent.returncode != 2 else ""


def check():
    seed = random.randrange(1 << 30)
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        ended = training.train("--out", "run", "--checkpoint-every", "8", "--steps", str(STEPS))
        if ended.returncode:
            return "", f"train exits {ended.returncode}: {one_line(ended.stderr)}"
        run = training.folder / "run"
        complaint = (check_whole(training, run) or check_flips(training, run, random.Random(seed), counts)
                     or check_absences(training, run) or check_other_loss(training, run))
    if complaint:
        return "", f"{complaint} (seed {seed})"
    told = ", ".join(f"{count} {how}" for how, count in sorted(counts.items()))
    return f"of {sum(counts.values())} flipped bits {told}; each absence and another loss found (seed {seed})", ""


sys.exit(tell("d12", check))
