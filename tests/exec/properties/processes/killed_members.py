#!/usr/bin/env python3
"""Trains over processes as a user does, kills some of them, and looks at what is left: the same bits as without, one sentence, nobody behind.

usage: killed_members.py [--kills N] [--seed N] [--epochs N] [--transport sockets|gloo]
FRAZIL names the program, default build/bin/frazil of this tree. Exit code 0: all held; 1: something did not; 77: the program is not there.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[4]
sys.path.insert(0, str(TREE / "tests/findings/support"))
from process_trials import Trial, members_of, wait_for  # noqa: E402
from training import FRAZIL, INPUTS, Failed, Training, one_line, tell  # noqa: E402


def check_listening(trial):
    """Own sockets are inherited; Gloo listens, at the loopback."""
    beyond = [address for address in trial.listening if not (trial.is_gloo and address.startswith("0100007F:"))]
    return f"listens at {beyond}, expected nowhere" if beyond else ""


def check_kills(training, expected, arguments, random_numbers):
    """Kills of members, under a plan with replicas and under one with stages alone."""
    undisturbed = 0
    for kill in range(arguments.kills):
        procs = 2 if kill % 2 == 0 else 4
        delay = random_numbers.uniform(0, 0.6)
        name = f"kill-{kill}"
        flags = ["--procs", str(procs), "--transport", arguments.transport, "--checkpoint-every", "5"]
        trial = Trial(training, name, flags, delay, kill)
        code, out, err = trial.end()
        where = f"kill {kill} ({procs} processes, {delay:.3f} s after the first steps)"
        if complaint := check_listening(trial):
            return f"{where}: {complaint}"
        if code != 0:
            return f"{where}: exit {code}: {one_line(err)}"
        if not wait_for(lambda: not trial.left_behind(), 10):
            return f"{where}: processes {trial.left_behind()} are left"
        answer = json.loads(out)
        if answer["state_hash"] != expected["state_hash"]:
            return f"{where}: other weights than without a kill"
        if "lost: its process has ended" not in err and "lost: their process has ended" not in err:
            undisturbed += 1
    if undisturbed == arguments.kills:
        return "no kill met a run under way"
    return ""


def check_sleeping(training, arguments, random_numbers):
    """A member whose devices the plan leaves idle is killed: what the others have done is done once."""
    made = training.run("profile", *"--run run.json --devices 1 --rounds 1 --steps 2 --memory-limit 1GiB --out one-model.json --cluster-out "
                        "one-device.json --quiet".split())
    if made.returncode:
        return f"profile exits {made.returncode}: {one_line(made.stderr)}"
    fixed = ["--no-freeze", "--keep-plan"]
    alone = training.run("train", *"--run run.json --profile model.json --cluster one-device.json --quiet --json --out alone".split(), *fixed)
    if alone.returncode:
        return f"one device: exit {alone.returncode}: {one_line(alone.stderr)}"
    for kill in range(1 + arguments.kills // 3):
        delay = random_numbers.uniform(0, 0.3)
        flags = ["--procs", "2", "--transport", arguments.transport, "--plan", "alone/phase-0/plan.json", *fixed]
        code, out, err = Trial(training, f"asleep-{kill}", flags, delay, kill).end()
        if code != 0:
            return f"a sleeping member killed after {delay:.3f} s: exit {code}: {one_line(err)}"
        if json.loads(out)["state_hash"] != json.loads(alone.stdout)["state_hash"]:
            return f"a sleeping member killed after {delay:.3f} s: other weights than without a kill"
    return ""


def check_early(training, transport):
    """A member that is killed before it is ready ends the run, in one sentence."""
    command = [FRAZIL, "train", *INPUTS, "--procs", "2", "--transport", transport]
    leader = subprocess.Popen(command, cwd=training.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if not wait_for(lambda: members_of(leader.pid) or leader.poll() is not None):
        raise Failed("no member within a minute")
    for member in members_of(leader.pid):
        os.kill(member, signal.SIGKILL)
    _, err = leader.communicate(timeout=120)
    words = "ranks 2 and 3 are lost: their process has ended"
    # On a busy machine the member may have been ready.
    if leader.returncode == 0 and words in err:
        return ""
    if leader.returncode != 6 or words not in err or len(err.strip().splitlines()) != 1:
        return f"a member is killed at once: exit {leader.returncode}: {one_line(err)}"
    return ""


def check_leader(training, transport):
    """Members end with their leader, and the run goes on where it was."""
    trial = Trial(training, "leader", ["--procs", "4", "--transport", transport, "--checkpoint-every", "5"], 0.1, -1)
    trial.end()
    if not wait_for(lambda: not trial.left_behind(), 10):
        return f"processes {trial.left_behind()} outlive their leader by 10 s"
    again = training.run("train", "--resume", "leader", "--procs", "4", "--transport", transport, "--json", "--quiet")
    if again.returncode:
        return f"--resume after the leader was killed exits {again.returncode}: {one_line(again.stderr)}"
    return json.loads(again.stdout)


def check(arguments):
    random_numbers = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        made = training.run("profile", *"--run run.json --devices 4 --rounds 1 --steps 2 --memory-limit 1GiB --out model.json --cluster-out "
                            "cluster.json --quiet".split())
        if made.returncode:
            raise Failed(f"profile exits {made.returncode}: {one_line(made.stderr)}")
        training.write_run("run.json", epochs=arguments.epochs)
        expected = training.train("--json")
        if expected.returncode:
            return f"one process: exit {expected.returncode}: {one_line(expected.stderr)}"
        expected = json.loads(expected.stdout)
        for procs in ("2", "3", "4"):
            over = training.train("--json", "--procs", procs, "--transport", arguments.transport)
            if over.returncode:
                return f"--procs {procs} exits {over.returncode}: {one_line(over.stderr)}"
            if json.loads(over.stdout)["state_hash"] != expected["state_hash"]:
                return f"--procs {procs} gives other weights"
        if complaint := check_kills(training, expected, arguments, random_numbers) or check_early(training, arguments.transport):
            return complaint
        if complaint := check_sleeping(training, arguments, random_numbers):
            return complaint
        resumed = check_leader(training, arguments.transport)
        if isinstance(resumed, str):
            return resumed
        if resumed["state_hash"] != expected["state_hash"]:
            return "other weights after the leader was killed and the run resumed"
        many = training.train("--procs", "5")
        if many.returncode != 2 or "procs" not in many.stderr:
            return f"more processes than devices: exit {many.returncode}: {one_line(many.stderr)}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--transport", choices=("sockets", "gloo"), default="sockets")
    arguments = parser.parse_args()
    seen = f"{arguments.kills} processes killed, {1 + arguments.kills // 3} that slept, and a leader: every run ended with the weights of an undisturbed one, none left a process"
    return tell(f"killed members, seed {arguments.seed}", lambda: (seen, check(arguments)))


sys.exit(main())
