#!/usr/bin/env python3
# A run of which any file was damaged ends with the same weights under `train --resume`, or is refused in one sentence; never other weights.
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from campaign import Campaign, Counted, Ended, tell_kinds  # noqa: E402
from runs import Runs  # noqa: E402

CORRUPTIONS = 800
PAGE = 4096
KINDS = ("flip", "truncation", "zeroed page", "appended bytes", "deleted file", "swapped files")


def corrupt(random, run):
    """Damages one file of the run, or two that are swapped; returns what was done."""
    paths = sorted(path for path in run.rglob("*") if path.is_file())
    kind, path = random.choice(KINDS), random.choice(paths)
    name, data = path.relative_to(run), bytearray(path.read_bytes())
    if kind == "flip" and data:
        bit = random.randrange(8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        return f"flip of bit {bit % 8} of byte {bit // 8} of {name}"
    if kind == "truncation" and data:
        size = random.randrange(len(data))
        path.write_bytes(data[:size])
        return f"truncation of {name} from {len(data)} to {size} bytes"
    if kind == "zeroed page" and data:
        begin = random.randrange(len(data)) // PAGE * PAGE
        data[begin:begin + PAGE] = bytes(len(data[begin:begin + PAGE]))
        path.write_bytes(data)
        return f"zeroed page at byte {begin} of {name}"
    if kind == "appended bytes":
        added = random.randbytes(random.randint(1, 200))
        path.write_bytes(data + added)
        return f"{len(added)} bytes appended to {name}"
    if kind == "swapped files":
        other = random.choice([place for place in paths if place != path])
        bytes_of_other = other.read_bytes()
        other.write_bytes(data)
        path.write_bytes(bytes_of_other)
        return f"swapped {name} and {other.relative_to(run)}"
    path.unlink()
    return f"deleted file {name}"


def do_corruption(runs, sources, random, place):
    run = place / "run"
    source = random.choice(sources)
    shutil.copytree(source, run)
    done = corrupt(random, run)
    ended = runs.resume(run)
    return Ended(ended.kind, f"{done} ({source.name}): {ended.complaint}" if ended.complaint else "")


def do_all(campaign, folder):
    runs = Runs(folder / "inputs")
    sources = [runs.whole, runs.make_killed("killed-at-40", 40), runs.make_killed("killed-at-70", 70)]
    tries, kinds, bad = campaign.do_tries(folder, lambda _, random, place: do_corruption(runs, sources, random, place))
    return Counted(tries, f"damaged runs end with the same weights or are refused in one sentence: {tell_kinds(kinds)}", bad)


sys.exit(Campaign("corruptions", CORRUPTIONS, __doc__).run(do_all))
