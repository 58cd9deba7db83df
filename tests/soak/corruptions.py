#!/usr/bin/env python3
# A run of which any file was damaged goes on from its newest whole checkpoint to the same weights; without one, or with other inputs, it may be refused.
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from campaign import Campaign, Counted, Ended, tell_kinds  # noqa: E402
from runs import Runs  # noqa: E402

CORRUPTIONS = 800
PAGE = 4096
KINDS = ("flip", "truncation", "zeroed page", "appended bytes", "deleted file", "swapped files")
LEAST_SHARE = 0.03  # of the tries: the newest checkpoint is damaged, and the one behind it is gone on from
JUDGED_FROM = 400  # tries; of fewer, a kind of damage may not meet the newest checkpoint


def corrupt(random, run):
    """Damages one file of the run, every other time one beside the checkpoints, or two that are swapped; returns the kind and
    what was done."""
    paths = sorted(path for path in run.rglob("*") if path.is_file())
    near = [path for path in paths if path.parent.name == "checkpoints"]
    kind, path = random.choice(KINDS), random.choice(random.choice([paths, near]))
    name, data = path.relative_to(run), bytearray(path.read_bytes())
    if kind == "flip" and data:
        bit = random.randrange(8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        return kind, f"flip of bit {bit % 8} of byte {bit // 8} of {name}"
    if kind == "truncation" and data:
        size = random.randrange(len(data))
        path.write_bytes(data[:size])
        return kind, f"truncation of {name} from {len(data)} to {size} bytes"
    if kind == "zeroed page" and data:
        begin = random.randrange(len(data)) // PAGE * PAGE
        data[begin:begin + PAGE] = bytes(len(data[begin:begin + PAGE]))
        path.write_bytes(data)
        return kind, f"zeroed page at byte {begin} of {name}"
    if kind == "appended bytes":
        added = random.randbytes(random.randint(1, 200))
        path.write_bytes(data + added)
        return kind, f"{len(added)} bytes appended to {name}"
    if kind == "swapped files":
        other = random.choice([place for place in paths if place != path])
        bytes_of_other = other.read_bytes()
        other.write_bytes(data)
        path.write_bytes(bytes_of_other)
        return kind, f"swapped {name} and {other.relative_to(run)}"
    path.unlink()
    return "deleted file", f"deleted file {name}"


def is_whole(source, run, path):
    here = run / path.relative_to(source)
    return here.exists() and here.read_bytes() == path.read_bytes()


def find_damage(source, run):
    """What the damage is of, and the step of the newest checkpoint that is whole, or None."""
    checkpoints = {int(path.stem.removeprefix("step-")): path for path in (source / "checkpoints").glob("step-*")}
    whole = [step for step, path in checkpoints.items() if is_whole(source, run, path)]
    newest = max(whole, default=None)
    if not all(is_whole(source, run, path) for path in (source / "inputs").iterdir()):
        return "inputs", newest
    if newest is None:
        return "every checkpoint", None
    return ("newest checkpoint" if newest != max(checkpoints) else "other files"), newest


def do_corruption(runs, sources, behind, random, place):
    """Appends the kind of damage to `behind` where the checkpoint behind the newest one is gone on from."""
    run, source = place / "run", random.choice(sources)
    shutil.copytree(source, run)
    kind, done = corrupt(random, run)
    damaged, newest = find_damage(source, run)
    answer = runs.go_on(run)
    ended = runs.judge(run, answer)
    if not ended.complaint and damaged not in ("inputs", "every checkpoint"):
        ended.complaint = complain(ended, answer, newest)
    if damaged == "newest checkpoint" and not ended.complaint:
        behind.append(kind)
    return Ended(f"of {damaged} {ended.kind}", f"{done} ({source.name}): {ended.complaint}" if ended.complaint else "")


def complain(ended, answer, newest):
    if ended.kind != "same weights":
        return f"{ended.kind}, though inputs and the checkpoint of step {newest} are whole: {answer.stderr.strip()[-400:]}"
    begun = json.loads(answer.stdout).get("resumed_from_step", 0)
    return f"gone on from step {begun}, though the checkpoint of step {newest} is whole" if begun < newest else ""


def find_untried(behind, tries):
    """A complaint if too few tries, or none of some kind of damage, were gone on from the checkpoint behind."""
    untried = [kind for kind in KINDS if kind not in behind]
    if tries < JUDGED_FROM or (not untried and len(behind) >= LEAST_SHARE * tries):
        return ""
    return (f"the checkpoint behind a damaged one was gone on from in {len(behind)} tries, expected {LEAST_SHARE * tries:.0f} and some of "
            f"each kind of damage; none of {untried}")


def do_all(campaign, folder):
    runs, behind = Runs(folder / "inputs"), []
    sources = [runs.whole, runs.make_killed("killed-at-40", 40), runs.make_killed("killed-at-70", 70)]
    tries, kinds, bad = campaign.do_tries(folder, lambda _, random, place: do_corruption(runs, sources, behind, random, place))
    if complaint := find_untried(behind, tries):
        bad += 1
        print(f"corruptions: {complaint}")
    told = tell_kinds({kind: behind.count(kind) for kind in KINDS})
    return Counted(tries, f"damaged runs end with the same weights or are refused in one sentence: {tell_kinds(kinds)}; the checkpoint "
                   f"behind the newest is gone on from in {len(behind)}: {told}", bad)


sys.exit(Campaign("corruptions", CORRUPTIONS, __doc__).run(do_all))
