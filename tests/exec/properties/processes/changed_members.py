#!/usr/bin/env python3
"""Trains while processes come and go, as a user starts and kills them, and looks at what is left: the bits of one process, every sample once, nothing leaked.

usage: changed_members.py [--changes N] [--seed N]
FRAZIL names the program, default build/bin/frazil of this tree. Exit code 0: all held; 1: something did not; 77: the program is not there.
"""
import argparse
import functools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[4]
sys.path.insert(0, str(TREE / "tests/findings/support"))
from process_counts import find_slope, look_at, tell_slope  # noqa: E402
from process_trials import members_of  # noqa: E402
from training import FRAZIL, INPUTS, Failed, Training, one_line, tell  # noqa: E402

PATIENCE = 120.0  # of a loaded machine
TIMES = ("detection_ns", "plan_ns", "transfer_ns", "first_step_ns")
BATCH = 12
STORY_STEPS = 1000
ENOUGH_FOR_A_SLOPE = 40  # changes
MOST_OF_A_MEMBER = 1  # KiB a change, of the lower end of the interval
RECORD_OF_A_CHANGE = 200  # KiB
STEPS_A_CHANGE = 200  # a process begins, takes part and is killed in fewer


class Ended(Failed):
    """The run was over before all that was to happen in it; a longer one is tried then."""


class Leader:
    """A training that leads others."""

    def __init__(self, training, name, *flags):
        self.training = training
        self.out = training.folder / name
        self.errors = training.folder / f"{name}.err"
        command = [FRAZIL, "train", *INPUTS, *flags, "--schedules", "1f1b", "--out", name, "--json"]
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(command, cwd=training.folder, stdout=subprocess.PIPE, stderr=errors, text=True)
        self.joined = []

    def told(self):
        return self.errors.read_text()

    def events(self, kind):
        log = self.out / "events.jsonl"
        if not log.exists():
            return []
        lines = log.read_text().splitlines()[1:]
        return [event for event in map(parse, lines) if event and event["kind"] == kind]

    def members(self, what):
        return [event for event in self.events("x-members") if event["event"] == what]

    def wait(self, what, holds):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if holds():
                return
            if self.process.poll() is not None:
                raise Ended(f"the run ended before {what}: exit {self.process.returncode}: {one_line(self.told())}")
            time.sleep(0.02)
        raise Failed(f"not within {PATIENCE:.0f} s: {what}")

    def wait_for_steps(self, more=3):
        begun = len(self.events("step"))
        self.wait(f"{more} more steps", lambda: len(self.events("step")) >= begun + more)

    def address(self):
        self.wait("it listened", lambda: "listening at " in self.told())
        return self.told().split("listening at ")[1].split()[0]

    def join(self, *flags):
        command = [FRAZIL, "train", "--join", self.address(), *flags]
        joiner = subprocess.Popen(command, cwd=self.training.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.joined.append(joiner)
        return joiner

    def end(self):
        out, _ = self.process.communicate(timeout=10 * PATIENCE)
        if self.process.returncode:
            raise Failed(f"exit {self.process.returncode}: {one_line(self.told())}")
        return json.loads(out)

    def clean(self):
        for process in [self.process, *self.joined]:
            if process.poll() is None:
                process.kill()
            process.wait()


def parse(line):
    try:
        return json.loads(line)
    except ValueError:
        return None  # it is being written


def check_steps(leader, count):
    """Every step, with all its samples, is done once."""
    steps = leader.events("step")
    if [event["step"] for event in steps] != list(range(count)):
        return "the log does not have each step once"
    if {event["samples"] for event in steps} != {BATCH}:
        return "a step lacks samples"
    return ""


def check_times(leader):
    recovered = leader.members("recovered")
    for event in recovered:
        times = [event[key] for key in TIMES]
        if any(not isinstance(value, int) or value < 0 for value in times):
            return f"a recovery tells {event}"
    return "" if recovered else "no recovery is told"


def list_plans(leader):
    return " -> ".join(event["summary"] for event in leader.events("plan"))


@functools.lru_cache
def expect(training, steps):
    """The answer of the undisturbed run in one process."""
    made = training.train("--schedules", "1f1b", "--steps", str(steps), "--json")
    if made.returncode:
        raise Failed(f"one process: exit {made.returncode}: {one_line(made.stderr)}")
    return json.loads(made.stdout)


def check_refused(leader, token, words):
    joiner = leader.join("--token-file", token)
    _, err = joiner.communicate(timeout=PATIENCE)
    if joiner.returncode != 2 or words not in err or len(err.strip().splitlines()) != 1:
        return f"a process that {words} exits {joiner.returncode}: {one_line(err)}"
    leader.wait(f"it told that a process {words}", lambda: words in leader.told())
    return ""


def with_time(steps, check_run):
    """Checks a run of so many steps, and where the machine is too slow for what is to happen in it, longer ones."""
    for longer in range(4):
        try:
            return check_run(steps << longer)
        except Ended as ended:
            if "exit 0" not in str(ended) or longer == 3:
                raise
    return ""


def check_story(training, steps, random_numbers):
    """It begins with 2 members, gains 2, loses 1 and gains 1."""
    for name in ("token", "other"):
        with open(os.open(training.folder / name, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(os.urandom(32))
    expected = expect(training, steps)
    leader = Leader(training, f"story-{steps}", "--steps", str(steps), "--listen", "127.0.0.1:0", "--procs", "2", "--places", "4",
                    "--token-file", "token")
    try:
        leader.join("--token-file", "token")
        leader.wait_for_steps()
        if complaint := check_refused(leader, "other", "has another token"):
            return complaint
        # Some go while they join, at whatever moment.
        for _ in range(2):
            dying = leader.join("--token-file", "token")
            time.sleep(random_numbers.uniform(0.05, 1.5))
            dying.kill()
            dying.wait()
            leader.wait_for_steps()
        came = len(leader.members("came"))
        third, fourth = leader.join("--token-file", "token"), leader.join("--token-file", "token")
        leader.wait("4 devices", lambda: any(event["devices"] == 4 for event in leader.members("came")[came:]))
        leader.wait_for_steps()
        if complaint := check_refused(leader, "token", "finds no vacant place"):
            return complaint
        held = look_at(leader.process.pid).counts
        recovered = len(leader.members("recovered"))
        third.kill()
        leader.wait("it went on after a loss", lambda: len(leader.members("recovered")) > recovered)
        came = len(leader.members("came"))
        leader.join("--token-file", "token")
        leader.wait("another came", lambda: len(leader.members("came")) > came)
        leader.wait_for_steps()
        if (now := look_at(leader.process.pid).counts) != held:
            return f"after a loss and a coming the leader has {now} descriptors and threads, before {held}"
        answer = leader.end()
        if fourth.wait(timeout=PATIENCE) != 0:
            return f"a process that came late exits {fourth.returncode}"
        if answer["state_hash"] != expected["state_hash"]:
            return "other weights than in one process"
        print("plans: " + list_plans(leader))
        return check_steps(leader, steps) or check_times(leader)
    finally:
        leader.clean()


def check_suspected(leader):
    """A member that is stopped for a while is suspected while a step waits for it, and heard of again."""
    member = members_of(leader.process.pid)[0]
    lost = len(leader.members("lost"))
    os.kill(member, signal.SIGSTOP)
    try:
        leader.wait("a stopped member was suspected", lambda: "nothing has been heard of rank" in leader.told())
    finally:
        os.kill(member, signal.SIGCONT)
    leader.wait("it was heard of again, or lost", lambda: leader.members("heard") or len(leader.members("lost")) > lost)
    return "" if leader.members("suspected") else "no suspicion stands in the log"


def plan_stages(training):
    made = training.run("plan", *"--profile model.json --cluster cluster.json --batch 12 --micro-batch 1 --max-replicas 1 --schedules 1f1b "
                        "--out stages.json".split())
    if made.returncode:
        raise Failed(f"plan exits {made.returncode}: {one_line(made.stderr)}")


def check_too_much(training):
    """A run whose processes somebody else has begun ends in all of them where nobody else holds some layer."""
    leader = Leader(training, "too-much", "--plan", "stages.json", "--listen", "127.0.0.1:0", "--procs", "3")
    try:
        joined = [leader.join(), leader.join()]
        leader.wait_for_steps()
        joined[0].kill()
        _, err = joined[1].communicate(timeout=PATIENCE)
        codes = leader.process.wait(timeout=PATIENCE), joined[1].returncode
        if codes != (6, 6):
            return f"without a holder of some layer leader and member exit {codes}: {one_line(leader.told())}, {one_line(err)}"
        words = "its process has ended, and nobody else holds "
        if words not in leader.told() or words not in err:
            return f"without a holder of some layer they say {one_line(leader.told())}, {one_line(err)}"
        return ""
    finally:
        leader.clean()


def check_joined_again(training, steps):
    """Where it keeps checkpoints, the processes that are left join again and go on from the newest one, and others may come."""
    expected = expect(training, steps)
    leader = Leader(training, f"again-{steps}", "--steps", str(steps), "--plan", "stages.json", "--listen", "127.0.0.1:0", "--procs", "3",
                    "--checkpoint-every", "20")
    try:
        first, second = leader.join(), leader.join()
        leader.wait("a checkpoint", lambda: leader.events("checkpoint"))
        first.kill()
        leader.wait("it went on from its newest checkpoint", lambda: leader.told().count("listening at ") == 2)
        leader.wait_for_steps()
        leader.join()
        leader.wait("another came", lambda: leader.members("came"))
        answer = leader.end()
        if second.wait(timeout=PATIENCE) != 0 or "joins again" not in second.stderr.read():
            return f"a process that was left exits {second.returncode}, expected that it joins again"
        if answer["state_hash"] != expected["state_hash"]:
            return "other weights than in one process, after layers were lost"
        return check_steps(leader, steps)
    finally:
        leader.clean()


def compare_counts(looks, change):
    first, now = ([held.counts for held in look] for look in (looks[0], looks[-1]))
    return "" if now == first else f"after {change + 1} changes leader and member have {now} descriptors and threads, before {first}"


def slope_of(looks, process):
    """KiB a change, over the later half."""
    return find_slope([(change, look[process].resident) for change, look in enumerate(looks)][len(looks) // 2:])


def tell_growth(looks):
    if len(looks) < ENOUGH_FOR_A_SLOPE:
        return ""
    return f"; memory grew by {tell_slope(slope_of(looks, 1))} a change in the member, {tell_slope(slope_of(looks, 0))} in the leader"


def check_growth(looks):
    """A member keeps nothing of a change. The leader keeps a record of the two phases that begin with each."""
    if len(looks) < ENOUGH_FOR_A_SLOPE:
        return ""
    for process, name, most in ((0, "leader", RECORD_OF_A_CHANGE), (1, "member", MOST_OF_A_MEMBER)):
        if slope_of(looks, process)[1] > most:
            return f"the {name} grows by {tell_slope(slope_of(looks, process))} a change"
    return ""


def check_changes(training, steps, arguments, random_numbers):
    """Processes are killed, and others begun in their places, so many times."""
    expected = expect(training, steps)
    leader = Leader(training, f"changes-{steps}", "--steps", str(steps), "--procs", "4", "--restart-lost")
    try:
        leader.wait_for_steps()
        oldest = members_of(leader.process.pid)[0]  # is never killed
        looks = []
        for change in range(arguments.changes):
            came = len(leader.members("came"))
            others = [member for member in members_of(leader.process.pid) if member != oldest]
            os.kill(random_numbers.choice(others), signal.SIGKILL)
            leader.wait(f"change {change}", lambda: len(leader.members("came")) > came and leader.members("came")[-1]["devices"] == 4)
            leader.wait_for_steps()
            looks.append((look_at(leader.process.pid), look_at(oldest)))
            if complaint := compare_counts(looks, change):
                return complaint
            time.sleep(random_numbers.uniform(0, 0.2))
        if complaint := check_suspected(leader):
            return complaint
        answer = leader.end()
        if answer["state_hash"] != expected["state_hash"]:
            return "other weights than in one process, after changes"
        recovered = leader.members("recovered")
        longest = {key: max(event[key] for event in recovered) / 1e6 for key in TIMES}
        print(f"{arguments.changes} changes: {sum(event['plan_ready'] for event in recovered)} of {len(recovered)} plans were ready; "
              f"{looks[0][0].descriptors} descriptors, {looks[0][0].threads} threads; at most "
              + ", ".join(f"{key} {ms:.1f} ms" for key, ms in longest.items()) + tell_growth(looks))
        return check_steps(leader, steps) or check_growth(looks)
    finally:
        leader.clean()


def even_out(profile):
    """Makes all layers equally slow, and messages cost nothing beside them: whatever was measured, plans are the same, and take replicas."""
    model = json.loads(profile.read_text())
    for layer in model["layers"]:
        for costs in layer["costs"]:
            costs.update({key: 1_000_000 for key, value in costs.items() if key.endswith("_ns") and value > 0})
    profile.write_text(json.dumps(model))


def check(arguments):
    random_numbers = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        training.write_run("run.json", epochs=1_000_000, batch_size=BATCH, micro_batch_size=1,
                           data={"kind": "synthetic", "train_samples": 4 * BATCH, "test_samples": 16, "seed": 3},
                           freeze={"alpha": 0.5, "start_epoch": 100, "interval_epochs": 100})
        made = training.run("profile", *"--run run.json --devices 4 --rounds 1 --steps 2 --memory-limit 1GiB --out model.json --cluster-out "
                            "cluster.json --quiet".split())
        if made.returncode:
            raise Failed(f"profile exits {made.returncode}: {one_line(made.stderr)}")
        even_out(training.folder / "model.json")
        complaint = with_time(STORY_STEPS, lambda steps: check_story(training, steps, random_numbers))
        plan_stages(training)
        complaint = complaint or check_too_much(training)
        complaint = complaint or with_time(STORY_STEPS // 2, lambda steps: check_joined_again(training, steps))
        if complaint or arguments.changes == 0:
            return complaint
        return with_time(STEPS_A_CHANGE * (arguments.changes + 1),
                         lambda steps: check_changes(training, steps, arguments, random_numbers))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    seen = "every run ended with the weights of an undisturbed one"
    return tell(f"members that come and go, seed {arguments.seed}", lambda: (seen, check(arguments)))


sys.exit(main())
