"""Lays two recordings side by side, after the filter and the rewordings that are meant."""

import difflib
import json
import re

from answer_text import draw_part, read_parts
from filter_rules import filter_parts
from recording import read_places

LINES_SHOWN = 60  # of a difference


def read_answers(folder):
    """Name -> answer as it is compared."""
    places = read_places(folder)
    answers = {}
    for file in sorted(folder.rglob("*.txt")):
        parts = filter_parts(read_parts(file.read_text()), places)
        answers[str(file.relative_to(folder).with_suffix(""))] = "".join(draw_part(*part) for part in parts)
    return answers


def reword(answers, rules):
    """The answers with what was meant to change, and for each rule a sentence how often it did."""
    told = []
    for rule in rules:
        used = 0
        for name, text in answers.items():
            answers[name], times = re.subn(rule["old"], rule["new"], text, flags=re.MULTILINE)
            used += times
        told.append(f"reworded {used} times: {rule['old']}")
    return answers, told


def is_unmeasured(name, answer):
    """Whether `verify` dropped all that it measured, as it does on a busy machine."""
    return name.startswith("verify/") and ("nothing to compare" in answer or '"ratios": []' in answer)


def differs(name, old, new):
    """Whether the answers of that name differ; prints how."""
    if name not in old or name not in new:
        print(f"{name}: only in the {'new' if name in new else 'old'} recording\n")
        return True
    if is_unmeasured(name, old[name]) or is_unmeasured(name, new[name]):
        print(f"{name}: not compared, for other programs were busy while it was measured\n")
        return False
    if old[name] == new[name]:
        return False
    told = (old[name].splitlines(), new[name].splitlines(), f"old {name}", f"new {name}")
    lines = list(difflib.unified_diff(*told, lineterm=""))
    print("\n".join(lines[:LINES_SHOWN]))
    print(f"... and {len(lines) - LINES_SHOWN} lines more\n" if len(lines) > LINES_SHOWN else "")
    return True


def compare(options):
    """Options are those of the command line. 0 where all answers are equal, else 1."""
    old, new = read_answers(options.old), read_answers(options.new)
    rules = json.loads(options.rewordings.read_text()) if options.rewordings else []
    old, told = reword(old, rules)
    names = sorted(name for name in old.keys() | new.keys() if re.search(options.only, name))
    different = sum(differs(name, old, new) for name in names)
    for sentence in told:
        print(sentence)
    print(f"{different} of {len(names)} answers differ" if different else f"all {len(names)} answers are equal")
    return 1 if different else 0
