#!/usr/bin/env python3
# SIGTERM and SIGINT end a training at any time with exit code 143 or 130, and --resume then ends with the same weights.
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from campaign import Campaign, Counted, Ended, tell_kinds  # noqa: E402
from runs import STEPS, Runs, count_steps  # noqa: E402
from training import one_line  # noqa: E402

SIGNALS = 47
DRAWS = 20  # of a time at which the training is still there, and has begun its folder


def send(runs, random, out):
    """Sends a signal at a random time of a training; returns the signal, the exit code and what was said."""
    for _ in range(DRAWS):
        number = random.choice([signal.SIGTERM, signal.SIGINT])
        process = runs.start(out, "--force")
        delay = random.uniform(0, 1.1 * runs.seconds)
        end = time.monotonic() + delay
        while time.monotonic() < end and process.poll() is None:
            time.sleep(0.0005)
        if process.poll() is None:
            process.send_signal(number)
        _, said = process.communicate(timeout=120)
        is_early = process.returncode in (-number, 128 + number) and not (out / "inputs/flags.json").exists()
        if process.returncode and not is_early:
            return number, process.returncode, said
    return None, 0, ""


def do_signal(runs, random, place):
    out = place / "run"
    number, code, said = send(runs, random, out)
    if number is None:
        return Ended("ended before", f"no signal met a training in {DRAWS} draws")
    steps = count_steps(out)
    # Before the first step and behind the last one the signal does what it does to any process.
    if code != 128 + number and not (code == -number and steps in (0, STEPS)):
        return Ended("wrong end", f"{number.name} after {steps} steps: exit {code}: {one_line(said)}")
    ended = runs.resume(out)
    if ended.kind != "same weights":
        return Ended("lost", f"{number.name} after {steps} steps, then --resume: {ended.complaint or ended.kind}")
    return Ended(f"{number.name} {'before the first step' if steps == 0 else 'behind the last step' if steps == STEPS else 'between steps'}")


def do_all(campaign, folder):
    runs = Runs(folder / "inputs")
    tries, kinds, bad = campaign.do_tries(folder, lambda _, random, place: do_signal(runs, random, place))
    return Counted(tries, f"trainings stopped by a signal exit with its code and go on to the same weights: {tell_kinds(kinds)}", bad)


sys.exit(Campaign("signals", SIGNALS, __doc__).run(do_all))
