#!/usr/bin/env python3
# SIGTERM and SIGINT, once or twice, end a training at any time with exit code 143 or 130; it can be reported, and --resume then ends with the same weights.
import dataclasses
import pathlib
import shutil
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from campaign import Campaign, Counted, Ended, tell_kinds  # noqa: E402
from runs import STEPS, Runs, count_steps, report  # noqa: E402
from training import one_line  # noqa: E402

SIGNALS = 47
DRAWS = 20  # of a time at which a signal ends a training that has begun its folder
LONGEST_BETWEEN = 0.1  # seconds from a signal to a second one, which ends a training at once
UNMET = "met no training"


@dataclasses.dataclass
class Sent:
    """A signal, or none if the training had ended, and how the training ended."""
    number: signal.Signals
    code: int
    said: str
    steps: int  # that the journal had when the signal was sent
    twice: bool

    def is_early(self, out):
        return self.number is not None and self.code in (-self.number, 128 + self.number) and not (out / "inputs/flags.json").exists()

    def is_late(self):
        """The training was in its last step or behind it, where nothing has to look for signals."""
        return self.code == 0 and (self.number is None or self.steps > STEPS - 2)


def send(runs, random, out):
    number = random.choice([signal.SIGTERM, signal.SIGINT])
    # What --force replaces is half gone if a signal comes meanwhile.
    shutil.rmtree(out, ignore_errors=True)
    process = runs.start(out)
    delay = random.uniform(0, 1.1 * runs.seconds)
    end = time.monotonic() + delay
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.0005)
    if process.poll() is None:
        process.send_signal(number)
    else:
        number = None
    steps = count_steps(out)
    twice = number is not None and random.random() < 0.5
    if twice:
        time.sleep(random.uniform(0, LONGEST_BETWEEN))
        process.send_signal(number)
    _, said = process.communicate(timeout=120)
    return Sent(number, process.returncode, said, steps, twice)


def do_signal(runs, missed, random, place):
    out = place / "run"
    for _ in range(DRAWS):
        sent = send(runs, random, out)
        if sent.is_early(out) or sent.is_late():
            missed.append("early" if sent.code else "late")
            continue
        return judge(runs, sent, out)
    return Ended(UNMET, f"no signal met a training in {DRAWS} draws")


def judge(runs, sent, out):
    if sent.number is None:
        return Ended("wrong end", f"exit {sent.code} without a signal: {one_line(sent.said)}")
    if sent.code == 0:
        return Ended("ignored", f"{sent.number.name} after {sent.steps} steps was ignored: exit 0 after all {STEPS}")
    steps = count_steps(out)
    # Before the first step and behind the last one the signal does what it does to any process, as a second one does.
    at_once = sent.code == -sent.number and (sent.twice or steps in (0, STEPS))
    if sent.code != 128 + sent.number and not at_once:
        return Ended("wrong end", f"{sent.number.name} after {steps} steps: exit {sent.code}: {one_line(sent.said)}")
    complaint = report(out)
    if complaint:
        return Ended("no report", f"{sent.number.name} after {steps} steps: {complaint}")
    ended = runs.resume(out)
    if ended.kind != "same weights":
        return Ended("lost", f"{sent.number.name} after {steps} steps, then --resume: {ended.complaint or ended.kind}")
    complaint = report(out)
    if complaint:
        return Ended("no report", f"{sent.number.name} after {steps} steps, then --resume: {complaint}")
    place = "before the first step" if steps == 0 else "behind the last step" if steps == STEPS else "between steps"
    return Ended(f"{sent.number.name} {'twice ' if sent.twice else ''}{place}")


def do_all(campaign, folder):
    # A process that begins with SIGINT ignored, as in the background of a shell, would pass that on to the trainings.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    runs, missed = Runs(folder / "inputs"), []
    tries, kinds, bad = campaign.do_tries(folder, lambda _, random, place: do_signal(runs, missed, random, place))
    return Counted(tries - kinds.get(UNMET, 0) - kinds.get("ignored", 0),
                   f"trainings stopped by a signal exit with its code and go on to the same weights: {tell_kinds(kinds)}; not counted: "
                   f"{missed.count('early')} sent before there was a folder, {missed.count('late')} behind the last look for signals", bad)


sys.exit(Campaign("signals", SIGNALS, __doc__).run(do_all))
