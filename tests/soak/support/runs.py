"""A run with freezing and checkpoints that was cut short, and whether `frazil train --resume` brings it back."""
import json
import re
import signal
import subprocess
import time

from campaign import Ended, Failed
from training import FRAZIL, INPUTS, Training, one_line

STEPS = 96
EVERY = 16  # steps from checkpoint to checkpoint
FREEZE = {"alpha": 0.5, "start_epoch": 6, "interval_epochs": 6}  # of 4 steps each: masks change on both sides of a cut
FLAGS = ["--steps", str(STEPS), "--checkpoint-every", str(EVERY), "--json"]
REFUSALS = {2, 3, 6, 7, 8, 9}  # docs/commands.md; 1 is for what should not be
RECORD = 64  # bytes of a line of the step journal


class Runs:
    """The inputs of one training in a folder, and the weights with which it ends."""

    def __init__(self, folder):
        folder.mkdir()
        self.training = Training(folder)
        self.folder = folder
        self.training.write_run("run.json", freeze=FREEZE)
        began = time.monotonic()
        ended = self.training.train("--out", "whole", *FLAGS)
        if ended.returncode:
            raise Failed(f"train exits {ended.returncode}: {one_line(ended.stderr)}")
        self.seconds = time.monotonic() - began
        self.whole = folder / "whole"
        self.hash = json.loads(ended.stdout)["state_hash"]
        self.weights = (self.whole / "weights.safetensors").read_bytes()

    def start(self, out, *arguments):
        return subprocess.Popen([FRAZIL, "train", *INPUTS, *FLAGS, "--out", str(out), *arguments], cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def make_killed(self, name, steps):
        """A run that `kill -9` ended when its journal had that many steps or a few more."""
        for _ in range(20):
            out = self.folder / name
            process = self.start(out, "--force")
            while process.poll() is None and count_steps(out) < steps:
                time.sleep(0.0005)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            if steps <= count_steps(out) < STEPS:
                return out
        raise Failed(f"no run could be killed at step {steps}")

    def go_on(self, run):
        return subprocess.run([FRAZIL, "train", "--resume", str(run), "--json", "--quiet"], cwd=run.parent,
                              capture_output=True, text=True, errors="replace", timeout=300)

    def resume(self, run):
        """Goes on with the run and judges how that ended: same weights, or a refusal in one sentence."""
        return self.judge(run, self.go_on(run))

    def judge(self, run, ended):
        if ended.returncode == 0:
            return self.judge_weights(run, ended)
        lines = [line for line in ended.stderr.splitlines() if not line.startswith("frazil train: step ")]
        said = one_line(ended.stderr) or "nothing said"
        if ended.returncode not in REFUSALS:
            return Ended("crashed", f"exit {ended.returncode}: {said}")
        if not lines or not lines[-1].startswith("frazil train: ") or re.search("terminate called|Traceback", said):
            return Ended("crashed", f"exit {ended.returncode} without a sentence: {said}")
        return Ended(f"refused ({ended.returncode})")

    def judge_weights(self, run, ended):
        found = json.loads(ended.stdout).get("state_hash")
        if found != self.hash:
            return Ended("other weights", f"exit 0 with weights {found}, expected {self.hash}: {one_line(ended.stderr)}")
        if (run / "weights.safetensors").read_bytes() != self.weights:
            return Ended("other weights", "exit 0, and weights.safetensors has other bytes")
        return Ended("same weights")


def report(run):
    """Complaint if `frazil report` or `frazil check` finds a phase of the run incomplete; "" before the log has a plan."""
    logs = [path.read_text() for path in (run / "trace.jsonl", run / "events.jsonl") if path.exists()]
    if not any('"kind":"plan"' in line for line in logs[:1]):
        return ""
    for words in (["report", str(run), "--out", str(run.parent / "report.html")], ["check", str(run)]):
        ended = subprocess.run([FRAZIL, *words], capture_output=True, text=True, errors="replace", timeout=300)
        said = ended.stdout + ended.stderr
        wrong = re.search("left out: phase-.*|phase-.* is incomplete.*|phase-.* it is not there.*", said)
        if wrong or (words[0] == "report" and ended.returncode):
            return f"frazil {words[0]} exits {ended.returncode}: {wrong.group() if wrong else one_line(ended.stderr)}"
    return ""


STEP = re.compile(rb"^(\d{12}) ([0-9a-f]{16}) ([0-9a-f]{16}) [0-9a-f]{16}$", re.MULTILINE)  # a line of the journal


def read_steps(run):
    """Step, loss and mask of the whole lines of the journal that are of steps."""
    journal = run / "checkpoints/steps.journal"
    return STEP.findall(journal.read_bytes()) if journal.exists() else []


def count_steps(run):
    """Steps that the journal has, from the first on."""
    steps = read_steps(run)
    return int(steps[-1][0]) + 1 if steps else 0
