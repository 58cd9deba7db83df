"""Trainings over processes, one of which is killed, for scripts that look at what is left."""
import os
import pathlib
import re
import signal
import subprocess
import time

from training import FRAZIL, INPUTS, Failed


def start_of(pid):
    """When a process began, in ticks since the machine did; none for one that is gone. Its number does not tell: numbers are used again."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return None


def members_of(leader):
    """The processes that a training has begun, the oldest first."""
    found = {}
    for task in pathlib.Path(f"/proc/{leader}/task").glob("*/children"):
        try:
            found |= {int(word): start_of(word) for word in task.read_text().split()}
        except OSError:
            pass
    there = [pid for pid, begun in found.items() if begun is not None]
    return sorted(there, key=lambda pid: (found[pid], pid))


def listeners_of(pids):
    """Addresses at which one of these processes listens."""
    inodes = set()
    for pid in pids:
        for descriptor in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
            try:
                inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(descriptor)))
            except OSError:
                pass
    listening = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in pathlib.Path(table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                listening.append(words[1])
    return listening


def wait_for(holds, seconds=60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.01)
    return holds()


class Trial:
    """A training over processes with one of them killed some time after its first steps."""

    def __init__(self, training, name, flags, delay, victim):
        self.training, self.name = training, name
        self.is_gloo = "gloo" in flags
        self.out = training.folder / name
        self.log = self.out / "events.jsonl"
        command = [FRAZIL, "train", *INPUTS, *flags, "--out", name, "--json"]
        self.process = subprocess.Popen(command, cwd=training.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.members = []
        if not wait_for(lambda: self.has_stepped() or self.process.poll() is not None):
            raise Failed("no step within a minute")
        time.sleep(delay)
        self.members = members_of(self.process.pid)
        self.listening = listeners_of([self.process.pid, *self.members])
        self.killed = None
        if self.members and victim is not None:
            self.killed = self.members[victim % len(self.members)] if victim >= 0 else self.process.pid
            os.kill(self.killed, signal.SIGKILL)

    def has_stepped(self):
        return self.log.exists() and self.log.read_text().count('"kind":"step"') > 2

    def end(self):
        out, err = self.process.communicate(timeout=120)
        return self.process.returncode, out, err

    def left_behind(self):
        return [pid for pid in self.members if pathlib.Path(f"/proc/{pid}").exists()]
