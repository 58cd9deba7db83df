#!/usr/bin/env python3
# Trainings over processes of which one is killed at a random moment, a member or the leader, end with the same weights and leave nothing behind.
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from campaign import Campaign, Counted, Ended, tell_kinds  # noqa: E402
from process_trials import Trial, wait_for  # noqa: E402
from training import Failed, Training, one_line  # noqa: E402

KILLS = 200
EPOCHS = 60  # of 4 steps: the blocks freeze one after another, and each time there is a transition
PROCESSES = (2, 3, 4)
LEADERS = 10  # every so many tries the leader is killed
LONGEST = 1.0  # seconds from the first steps to the kill
SECONDS = 2  # after which nobody may be left
TEMPORARY = ("/dev/shm", "/tmp")


def entries():
    return {str(path) for folder in TEMPORARY for path in pathlib.Path(folder).glob("*frazil*")}


class KilledMembers:
    def __init__(self, folder):
        folder.mkdir()
        self.training = Training(folder)
        made = self.training.run("profile", *"--run run.json --devices 4 --rounds 1 --steps 2 --memory-limit 1GiB --out model.json "
                                 "--cluster-out cluster.json --quiet".split())
        if made.returncode:
            raise Failed(f"profile exits {made.returncode}: {one_line(made.stderr)}")
        self.training.write_run("run.json", epochs=EPOCHS)
        whole = self.training.train("--json")
        if whole.returncode:
            raise Failed(f"one process exits {whole.returncode}: {one_line(whole.stderr)}")
        self.hash = json.loads(whole.stdout)["state_hash"]

    def kill_one(self, number, random):
        procs, delay = random.choice(PROCESSES), random.uniform(0, LONGEST)
        is_leader = number % LEADERS == LEADERS - 1
        flags = ["--procs", str(procs), "--checkpoint-every", "5"]
        trial = Trial(self.training, f"try-{number}", flags, delay, -1 if is_leader else random.randrange(procs - 1))
        code, out, err = trial.end()
        where = f"{procs} processes, {'the leader' if is_leader else 'a member'} killed {delay:.3f} s after the first steps"
        if not wait_for(lambda: not trial.left_behind(), SECONDS):
            return Ended("left behind", f"{where}: processes {trial.left_behind()} are left after {SECONDS} s")
        if trial.listening:
            return Ended("listening", f"{where}: found listeners at {trial.listening}, expected none")
        if is_leader and trial.killed and code != 0:
            again = self.training.run("train", "--resume", trial.name, "--procs", str(procs), "--json", "--quiet")
            code, out, err = again.returncode, again.stdout, again.stderr
        if code != 0:
            return Ended("lost", f"{where}: exit {code}: {one_line(err)}")
        if json.loads(out)["state_hash"] != self.hash:
            return Ended("other weights", f"{where}: other weights than without a kill")
        if not trial.killed:
            return Ended("over before the kill")
        if is_leader:
            return Ended("resumed after the leader's end")
        return Ended("gone on with a member less" if "lost: " in err else "past their last step")


def do_all(campaign, folder):
    before = entries()
    killed = KilledMembers(folder / "inputs")
    tries, kinds, bad = campaign.do_tries(folder, lambda number, random, _: killed.kill_one(number, random))
    if left := sorted(entries() - before - {str(folder)}):
        bad += 1
        print(f"member_kills: left behind: {left}")
    return Counted(tries, f"trainings over 2 to 4 processes with one killed: {tell_kinds(kinds)}; all with the weights of one process, "
                   f"no process left after {SECONDS} s, no listener", bad)


sys.exit(Campaign("member_kills", KILLS, __doc__).run(do_all))
