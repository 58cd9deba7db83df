#!/usr/bin/env python3
# Trainings that `kill -9` ends at random moments and that go on under other plans lose no step, can be reported and end with the same weights and losses.
import json
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from campaign import Campaign, Counted, Ended, tell_kinds  # noqa: E402
from runs import FLAGS, FREEZE, STEPS, Runs, read_steps, report  # noqa: E402
from training import FRAZIL, INPUTS, one_line  # noqa: E402

KILLS = 150
LIVES = 5  # of a training, each with a kill; the last ones may end before theirs
KILLS_OF_A_RUN = 4
LONGEST_AFTER = 0.005  # seconds from a step to the kill
DEVICES = (2, 3, 1, 4)  # of the clusters, in turn
CACHE = {"kind": "on", "memory_bytes": 4096, "disk_bytes": 1 << 20, "folder": "", "admission": "always"}


class KilledRuns:
    def __init__(self, folder):
        self.runs = Runs(folder)
        self.folder = folder
        (folder / "cache").mkdir()
        self.runs.training.write_run("cached.json", freeze=FREEZE, cache={**CACHE, "folder": str(folder / "cache")})
        cluster = json.loads((folder / "cluster.json").read_text())
        for count in DEVICES:
            devices = [{**cluster["devices"][0], "name": f"device{i}"} for i in range(count)]
            (folder / f"devices-{count}.json").write_text(json.dumps({**cluster, "devices": devices}))
        self.steps = read_steps(self.runs.whole)
        self.killed = 0

    def start(self, run, devices):
        """Begins or goes on with the run, which has other inputs than the one that nothing happens to: a cache."""
        cluster = f"devices-{devices}.json"
        if (run / "inputs/flags.json").exists():
            words = ["--resume", str(run), "--cluster", cluster, "--json", "--quiet"]
        else:
            names = {"run.json": "cached.json", "cluster.json": cluster}
            words = [*(names.get(word, word) for word in INPUTS), *FLAGS, "--out", str(run), "--force"]
        return subprocess.Popen([FRAZIL, "train", *words], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def kill_at(self, run, devices, step, random):
        """Kills a process when the journal has so many steps, or at a random time where it has them already."""
        before = read_steps(run)
        after = random.uniform(0, LONGEST_AFTER if len(before) < step else self.runs.seconds)
        process, due = self.start(run, devices), None
        while process.poll() is None and (due is None or time.monotonic() < due):
            if due is None and (len(before) >= step or len(read_steps(run)) >= step):
                due = time.monotonic() + after
            time.sleep(0.0005)
        process.kill()
        _, said = process.communicate()
        if process.returncode not in (0, -signal.SIGKILL):
            return f"exit {process.returncode}: {one_line(said)}"
        self.killed += process.returncode != 0
        if read_steps(run)[:len(before)] != before:
            return f"{len(before)} steps in the journal before a kill, {len(read_steps(run))} after it"
        complaint = report(run)
        return f"after a kill {complaint}" if complaint else ""

    def live(self, random, place):
        run, complaint = place / "run", ""
        turn = random.randrange(len(DEVICES))
        moments = sorted(random.randrange(STEPS) for _ in range(LIVES))
        for life, step in enumerate(moments):
            complaint = self.kill_at(run, DEVICES[(turn + life) % len(DEVICES)], step, random)
            if complaint:
                return Ended("lost", f"life {life} of moments {moments}: {complaint}")
        process = self.start(run, DEVICES[(turn + LIVES) % len(DEVICES)])
        out, said = process.communicate(timeout=300)
        ended = self.runs.judge(run, subprocess.CompletedProcess([], process.returncode, out, said))
        if ended.kind != "same weights":
            return Ended("lost", f"moments {moments}: {ended.complaint or one_line(said)}")
        if read_steps(run) != self.steps:
            return Ended("other losses", f"moments {moments}: the journal has other steps, losses or masks")
        complaint = report(run)
        if complaint:
            return Ended("no report", f"moments {moments}: at the end {complaint}")
        left = [str(path) for path in [*run.rglob("*.tmp*"), *run.rglob(".tmp-*")]]
        return Ended("same weights and losses", f"left behind: {left}" if left else "")


def do_all(campaign, folder):
    killed = KilledRuns(folder / "inputs")
    campaign.count = -(-campaign.count // KILLS_OF_A_RUN)
    tries, kinds, bad = campaign.do_tries(folder, lambda _, random, place: killed.live(random, place))
    if any((folder / "inputs/cache").iterdir()):
        bad += 1
        print("kills: a cache of a killed process is left behind")
    return Counted(killed.killed, f"kills of {tries} trainings, each going on with other devices and losing no step: {tell_kinds(kinds)}",
                   bad)


sys.exit(Campaign("kills", KILLS, __doc__).run(do_all))
