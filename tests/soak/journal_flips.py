#!/usr/bin/env python3
# No flipped bit of a step journal loses a run: `train --resume` ends with the same weights, and the damaged journal is kept beside.
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from campaign import Campaign, Counted, Ended, tell_kinds  # noqa: E402
from runs import RECORD, Runs  # noqa: E402

FLIPS = 1000
KILLED_AT = (40, 70)  # steps: some behind the newest checkpoint
AFTER = "checkpoints/steps.journal"


def flip(data, bit):
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def do_flip(runs, crashed, random, place):
    run = place / "run"
    source = random.choice(crashed)
    shutil.copytree(source, run)
    data = (run / AFTER).read_bytes()
    bit = random.randrange(8 * len(data))
    damaged = flip(data, bit)
    (run / AFTER).write_bytes(damaged)
    ended = runs.resume(run)
    if ended.kind != "same weights":
        return Ended("lost", f"bit {bit % 8} of byte {bit // 8} of {len(data)} of {source.name}: {ended.complaint or ended.kind}")
    aside = [path.read_bytes() for path in (run / "checkpoints").glob("steps.journal?*")]
    if damaged in aside:
        return Ended("with the damaged file kept")
    if bit // 8 >= len(data) // RECORD * RECORD - RECORD:
        return Ended("in the last record, which is done again")
    return Ended("not kept", f"bit {bit % 8} of byte {bit // 8} of {len(data)} of {source.name}: the damaged journal is not kept")


def do_all(campaign, folder):
    runs = Runs(folder / "inputs")
    crashed = [runs.make_killed(f"killed-at-{step}", step) for step in KILLED_AT]
    tries, kinds, bad = campaign.do_tries(folder, lambda _, random, place: do_flip(runs, crashed, random, place))
    return Counted(tries, f"runs of which one bit of the journal was flipped end with the same weights: {tell_kinds(kinds)}", bad)


sys.exit(Campaign("journal_flips", FLIPS, __doc__).run(do_all))
