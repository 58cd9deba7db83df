#!/usr/bin/env python3
# No damaged input makes a program crash, hang, take 2 GiB, or say more or less than one sentence; exit codes are the documented ones.
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from campaign import Campaign, Counted, Ended  # noqa: E402
from mutate import mutate  # noqa: E402
from readers import make_inputs  # noqa: E402
from training import FRAZIL, one_line  # noqa: E402

MUTANTS = 30085
SECONDS = 10  # of a processor
GUARD = 120  # seconds on the clock, for a process that waits for ever
LIMITED = f'ulimit -t {SECONDS}; ulimit -v {2 << 20}; exec "$@"'  # 2 GiB
CODES = {0, 2, 3, 7, 8, 9}  # docs/commands.md; 1 is for what should not be
DISAGREES = 4  # of check, which lists problems in its answer
NO_SENTENCE = re.compile(r"terminate called|Traceback|what\(\)|Assertion|runtime error|Sanitizer|std::")


def mutate_words(command, random, others):
    """The command with one or two words changed, but no name of a file to write."""
    words = command.split()
    places = [i for i in range(1, len(words)) if "OUT" not in (words[i], words[i - 1]) and words[i] != "--out"]
    for place in random.sample(places, random.choice([1, 1, 2])):
        drawn = mutate(words[place].encode(), random, others).decode("utf-8", "replace")
        words[place] = drawn.replace("\0", "").replace("/", "")[:2000]
    return words


def prepare(reader, random, place, others):
    """Writes the mutant; returns the words of the command that reads it."""
    command = random.choice(reader.commands)
    if not reader.paths:
        return [word.replace("OUT", str(place / "out")) for word in mutate_words(command, random, others)]
    source = random.choice([reader.paths[0], random.choice(reader.paths)])
    mutant = place / ("mutant" + source.suffix)
    if reader.folder:
        shutil.copytree(reader.folder, place / "run")
        mutant = place / "run" / source.relative_to(reader.folder)
    mutant.write_bytes(mutate(source.read_bytes(), random, others))
    names = {"FILE": str(mutant), "FOLDER": str(place / "run"), "OUT": str(place / "out")}
    return [names.get(word, word) for word in command.split()]


def judge(kind, words, ended):
    said = one_line(ended.stderr)[:400]
    what = f"{kind}: frazil {' '.join(words)[:300]}: exit {ended.returncode}: {said or 'nothing said'}"
    if ended.returncode == 0:
        return Ended("taken")
    if ended.returncode == DISAGREES and words[0] == "check" and "problem" in ended.stdout and not ended.stderr:
        return Ended("found out by check")
    if ended.returncode not in CODES:
        return Ended("crashed", what)
    lines = ended.stderr.splitlines()
    if len(lines) != 1 or not lines[0].startswith("frazil") or NO_SENTENCE.search(ended.stderr):
        return Ended("badly told", what)
    return Ended(f"refused ({ended.returncode})")


def do_mutant(readers, others, inputs, random, place):
    reader = random.choices(readers, [reader.weight for reader in readers])[0]
    words = prepare(reader, random, place, others)
    try:
        ended = subprocess.run(["sh", "-c", LIMITED, "sh", FRAZIL, *words], cwd=inputs, capture_output=True, encoding="utf-8",
                               errors="replace", timeout=GUARD)
    except subprocess.TimeoutExpired:
        return Ended("hung", f"{reader.kind}: frazil {' '.join(words)[:300]}: no end within {GUARD} s")
    return judge(reader.kind, words, ended)


def do_all(campaign, folder):
    inputs = folder / "inputs"
    inputs.mkdir()
    readers = make_inputs(inputs)
    others = [path.read_bytes() for reader in readers for path in reader.paths]
    tries, kinds, bad = campaign.do_tries(folder, lambda _, random, place: do_mutant(readers, others, inputs, random, place))
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return Counted(tries, f"mutants of {len(readers)} kinds of input end within {SECONDS} s and 2 GiB by a documented code and one "
                   f"sentence: {told}", bad)


sys.exit(Campaign("mutants", MUTANTS, __doc__).run(do_all))
