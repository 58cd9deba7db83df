#!/usr/bin/env python3
"""Runs that end and go on under plans that nobody chose: a measured profile is drawn anew, each time over other orders of magnitude.

resumed_models.py [KIND]... [--draws N] [--seed N]: the kinds of every_model.py, default all but those that learn from or search for another. Every
run must end with the weights of one that never ended, whatever plans it took before and after. FRAZIL names the program. Exit code 0: all held;
1: one did not, which is told with where it parted; 77: the program is not there.
"""
import argparse
import json
import pathlib
import random
import shutil
import sys
import tempfile

from every_model import FRAZIL, MODELS, Absent, Kind, first_difference, tell

STEPS, CUT, EVERY = 12, 6, 3


def scaled(value, factor):
    """A copy in which each time is another."""
    if isinstance(value, dict):
        return {key: int(one * factor()) if key.endswith("_ns") else scaled(one, factor) for key, one in value.items()}
    return [scaled(one, factor) for one in value] if isinstance(value, list) else value


def draw_profile(profile, cluster, numbers):
    """Layers that differ by up to six orders of magnitude, and links up to six slower or faster."""
    spread = numbers.choice((0.3, 1, 2, 3))

    def factor():
        return 10 ** numbers.uniform(-spread, spread)

    layers = [scaled(layer, factor if numbers.random() < 0.5 else lambda one=factor(): one) for layer in profile["layers"]]
    link = 10 ** numbers.uniform(-4, 2)
    drawn = {key: scaled(value, lambda: link) if "link" in key else value for key, value in cluster.items()}
    devices = [{**device, "time_ppm": int(device.get("time_ppm", 10**6) * 10 ** numbers.uniform(-1, 1))} for device in cluster["devices"]]
    return {**profile, "layers": layers}, {**drawn, "devices": devices}


def check_draws(kind, draws, numbers):
    """Where runs that went on differ from the whole one, and how many plans there were."""
    whole, summaries, wrong = kind.train("--out", "whole", run="frozen.json"), set(), []
    profile, cluster = kind.profile, json.loads((kind.folder / "cluster.json").read_text())
    for draw in range(draws):
        for name, drawn in zip(("model.json", "cluster.json"), draw_profile(profile, cluster, numbers)):
            (kind.folder / name).write_text(json.dumps(drawn))
        shutil.rmtree(kind.folder / "kept", ignore_errors=True)
        kind.train("--steps", str(CUT), "--checkpoint-every", str(EVERY), "--out", "kept", run="frozen.json")
        resumed = json.loads(kind.succeed(*f"train --resume kept --steps {STEPS} --quiet --json".split()))
        summaries |= set(kind.events("kept")[1].values())
        if resumed["state_hash"] != whole[0]:
            wrong.append(f"{kind.name}, draw {draw}: {first_difference(kind.events('whole'), kind.events('kept'))}")
    return wrong, len(summaries)


def check(arguments):
    if not pathlib.Path(FRAZIL).exists():
        raise Absent(f"no {FRAZIL}")
    wrong, plans = [], 0
    for name in arguments.kinds or [kind for kind in MODELS if kind != "supernet"]:
        with tempfile.TemporaryDirectory() as folder:
            found, different = check_draws(Kind(pathlib.Path(folder), name), arguments.draws, random.Random(f"{arguments.seed} {name}"))
            wrong, plans = wrong + found, plans + different
    return f"{arguments.draws} draws of each profile, {plans} plans by their summaries: equal weights", "; ".join(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    arguments = parser.parse_args()
    return tell(f"resumed_models.py, seed {arguments.seed}", lambda: check(arguments))


sys.exit(main())
