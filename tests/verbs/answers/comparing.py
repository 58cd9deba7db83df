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


def is_skipped(name, *recordings):
    """Whether a recording has no measured answer of that name, so that there is nothing to compare."""
    return any(is_unmeasured(name, answers.get(name, "")) for answers in recordings)


def succeeded(answer):
    """Whether all commands of an answer ended with exit code 0; False for inputs, which are no commands."""
    codes = [text.strip() for title, text in read_parts(answer) if title.endswith(": exit code")]
    return bool(codes) and all(code in ("0", "0, 4 or 5") for code in codes)


def differs(name, old, new):
    """Whether the answers of that name differ; prints how."""
    if name not in old or name not in new:
        print(f"{name}: only in the {'new' if name in new else 'old'} recording\n")
        return True
    if old[name] == new[name]:
        return False
    told = (old[name].splitlines(), new[name].splitlines(), f"old {name}", f"new {name}")
    lines = list(difflib.unified_diff(*told, lineterm=""))
    print("\n".join(lines[:LINES_SHOWN]))
    print(f"... and {len(lines) - LINES_SHOWN} lines more\n" if len(lines) > LINES_SHOWN else "")
    return True


def compare(options):
    """Options are those of the command line. 0 where all answers are equal and enough commands succeeded, else 1."""
    old, new = read_answers(options.old), read_answers(options.new)
    rules = json.loads(options.rewordings.read_text()) if options.rewordings else []
    old, told = reword(old, rules)
    names = sorted(name for name in old.keys() | new.keys() if re.search(options.only, name))
    skipped = [name for name in names if name in old and name in new and is_skipped(name, old, new)]
    compared = [name for name in names if name not in skipped]
    for name in skipped:
        print(f"{name}: not compared, for other programs were busy while it was measured\n")
    different = sum(differs(name, old, new) for name in compared)
    successes = sum(succeeded(new[name]) for name in compared if name in new)
    idle = [sentence for sentence in told if sentence.startswith("reworded 0 times") and not options.only]
    for sentence in told:
        print(sentence)
    if skipped:
        print(f"{len(skipped)} answers were not compared")
    if not compared:
        print("found no answers to compare, so nothing was shown")
        return 1
    print(f"{different} of {len(compared)} answers differ" if different else f"all {len(compared)} answers are equal")
    print(f"{successes} of these commands succeeded in the new recording (exit code 0; 0, 4 or 5 of `verify`)")
    if successes < options.least:
        print(f"expected {options.least} of them at least, so nothing was shown: record again, with programs that run")
    if idle:
        print("found rewordings that no old answer needs: take them out")
    return 1 if different or successes < options.least or idle else 0
