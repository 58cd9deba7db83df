#!/usr/bin/env python3
"""Times all plans that Pipe-BD's search tries on two devices, with real kernels, and compares their order with the predicted one.

usage: every_plan.py [FOLDER] [--rounds N] [--epochs N] [--programs FOLDER]
Ten transformer blocks teach five, two to one; with the head that is six blocks, and so six plans: five cuts, and all blocks on both devices, which
take the micro-batches in turn. In each round every plan trains for some epochs of the digits, so that a slow moment of the machine is one of all.
A pair of plans counts where all rounds of one took longer than all rounds of the other. Exit code 1: such a pair is predicted in another order, or
there are fewer than five of them.
"""

import argparse
import itertools
import pathlib
import statistics
import sys

from compare import STEPS_AHEAD, VIT, WORKLOADS, Comparison, Frazil, step_time

PAIRS = ({"teacher": f"block{2 * i}", "student": f"block{i}"} for i in range(1, 6))
WORKLOADS["deep"] = {"teacher": {**VIT, "blocks": 10}, "student": {**VIT, "blocks": 5}, "blocks": [*PAIRS, "head"]}

LEAST_APART = 5  # pairs of the fifteen, for fewer tell no order


def write_plans(comparison):
    """Names and files of the plans, which hand out steps ahead."""
    comparison.find("best")
    starts = [next(index for index, layer in enumerate(comparison.layers) if layer["block"] == block) for block in range(1, comparison.blocks)]
    plans = {f"cut before block {block}": comparison.plan(f"cut{block}", [[(0, 0), (first, 1)]], steps_ahead=STEPS_AHEAD)
             for block, first in enumerate(starts, 2)}
    comparison.plan("shared", [[(0, 0)]], steps_ahead=STEPS_AHEAD)
    for name in ("shared.json", "shared-masked.json"):
        plan = comparison.frazil.read(name)
        plan["pipelines"][0]["stages"][0]["devices"] = [0, 1]
        comparison.frazil.write(name, plan)
    return plans | {"both devices share": "shared"}


def compare_orders(predicted, measured):
    """The pairs whose measured times do not overlap, and those of them that are predicted the other way round."""
    apart = [(slow, fast) for slow, fast in itertools.permutations(measured, 2) if min(measured[slow]) > max(measured[fast])]
    return apart, [pair for pair in apart if predicted[pair[0]] < predicted[pair[1]]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=pathlib.Path("every-plan"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "build/bin")
    arguments = parser.parse_args()
    if arguments.rounds < 2:
        parser.error(f"found --rounds {arguments.rounds}, expected 2 or more, for one round does not tell its noise")
    if not (arguments.programs / "frazil-train").exists():
        parser.error(f"found no {arguments.programs / 'frazil-train'}, expected what a build leaves")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    comparison = Comparison(Frazil(arguments.programs, arguments.folder), "deep", arguments.epochs)
    comparison.prepare()
    plans = write_plans(comparison)
    predicted = {name: comparison.predict(plan) for name, plan in plans.items()}
    measured = {name: [] for name in plans}
    for _ in range(arguments.rounds):
        for name, plan in plans.items():
            measured[name].append(step_time(comparison.train(plan)))
    print(f"{'plan':<20}  step, predicted    measured  least to most")
    for name, times in sorted(measured.items(), key=lambda one: predicted[one[0]]):
        print(f"{name:<20}  {predicted[name] / 1e6:>12.2f} ms  {statistics.median(times) / 1e6:>7.2f} ms  {min(times) / 1e6:.2f} to {max(times) / 1e6:.2f}")
    apart, wrong = compare_orders(predicted, measured)
    print(f"{len(apart)} of {len(plans) * (len(plans) - 1) // 2} pairs differ by more than the rounds of one plan, {len(wrong)} of them in another order than predicted")
    for slow, fast in wrong:
        print(f"`{slow}` took longer than `{fast}`")
    if len(apart) < LEAST_APART:
        print(f"fewer than {LEAST_APART} pairs differ enough to tell an order: more --rounds, or a quieter machine")
    return 1 if wrong or len(apart) < LEAST_APART else 0


if __name__ == "__main__":
    sys.exit(main())
