#!/usr/bin/env python3
"""Trains over two processes that are in two network namespaces, as on two hosts: the weights of one process; and a cut link is noticed and survived.

Needs root and `ip netns`. FRAZIL names the program, default build/bin/frazil of this tree.
Exit code 0: all held; 1: something did not; 77: something that it needs is not there.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

TREE = pathlib.Path(__file__).resolve().parents[4]
sys.path.insert(0, str(TREE / "tests/findings/support"))
from training import FRAZIL, INPUTS, Absent, Failed, Training, one_line, tell, wait_until  # noqa: E402

LEADER, MEMBER = "10.203.7.1", "10.203.7.2"
SLACK = 8.0  # seconds that a machine with much to do may take beyond what is promised


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode:
        raise Absent(f"`ip {' '.join(words)}` fails: {one_line(done.stderr)}")


class Networks:
    """Two namespaces and a link between them."""

    def __enter__(self):
        if os.geteuid() != 0 or shutil.which("ip") is None:
            raise Absent("network namespaces need root and ip")
        self.names = [f"frazil-{os.getpid()}-{side}" for side in "ab"]
        try:
            for name in self.names:
                ip("netns", "add", name)
                ip("-n", name, "link", "set", "lo", "up")
            ip("link", "add", "wire", "netns", self.names[0], "type", "veth", "peer", "name", "wire", "netns", self.names[1])
            for name, address in zip(self.names, (LEADER, MEMBER)):
                ip("-n", name, "addr", "add", f"{address}/24", "dev", "wire")
                ip("-n", name, "link", "set", "wire", "up")
        except Absent:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def cut(self):
        ip("-n", self.names[0], "link", "set", "wire", "down")

    def mend(self):
        ip("-n", self.names[0], "link", "set", "wire", "up")


class Told:
    """The lines of a process's stderr, with the times at which they came."""

    def __init__(self, process):
        self.lines = []
        self.thread = threading.Thread(target=self.read, args=(process,))
        self.thread.start()

    def read(self, process):
        for line in process.stderr:
            self.lines.append((time.monotonic(), line.rstrip()))

    def find(self, pattern):
        return next(((when, found) for when, line in list(self.lines) if (found := re.search(pattern, line))), None)

    def text(self):
        return one_line(" ".join(line for _, line in self.lines))


class Pair:
    """A leader in one network and a member in the other."""

    def __init__(self, training, networks, flags):
        self.leader = self.start(training, networks.names[0], [
            *[word for word in INPUTS if word != "--quiet"], "--listen", f"{LEADER}:0", "--procs", "2", "--json", *flags])
        self.told = Told(self.leader)
        wait_until(self.leader, lambda: self.told.find(r"listening at (\S+)"))
        found = self.told.find(r"listening at (\S+)")
        if not found:
            raise Failed(f"the leader does not listen: {self.told.text()}")
        self.member = self.start(training, networks.names[1], ["--join", found[1][1]])
        self.member_told = Told(self.member)

    @staticmethod
    def start(training, network, words):
        return subprocess.Popen(["ip", "netns", "exec", network, FRAZIL, "train", *words, "--token-file", "token"],
                                cwd=training.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self):
        """The answer of the leader, and the member's exit code."""
        try:
            code = self.leader.wait(timeout=90)
            member = self.member.wait(timeout=30)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{late}; the leader says: {self.told.text()}; the member says: {self.member_told.text()}") from late
        finally:
            self.leader.kill()
            self.member.kill()
        out = self.leader.stdout.read()
        self.told.thread.join()
        self.member_told.thread.join()
        if code:
            raise Failed(f"the leader exits {code}: {self.told.text()}")
        return json.loads(out)["state_hash"], member


def longest_step(log):
    """In seconds: where other programs take the machine, a step may take far longer than is predicted, and so may silence."""
    return max(json.loads(line)["time_ns"] for line in log.read_text().splitlines() if '"kind":"step"' in line) / 1e9


def check_cut(training, networks):
    training.write_run("run.json", epochs=150)
    expected = json.loads(training.train("--json").stdout)["state_hash"]
    pair = Pair(training, networks, ["--out", "cut", "--checkpoint-every", "50"])
    log = training.folder / "cut" / "events.jsonl"
    wait_until(pair.leader, lambda: log.exists() and log.read_text().count('"kind":"step"') > 20)
    networks.cut()
    begin = time.monotonic()
    found, member = pair.end()
    networks.mend()
    lost = pair.told.find(r"rank 1 is lost: its process has not been heard of for (\d+) ms")
    if not lost:
        return "", f"a cut link is told as: {pair.told.text()}"
    after = lost[0] - begin
    promised = max(2, 5 * longest_step(log)) + 0.2
    if after > promised + SLACK:
        return "", f"a cut link is noticed after {after:.2f} s, expected at most {promised:.2f} s, told as {lost[1][0]}"
    if member != 6 or not pair.member_told.find("the leader of the run is lost"):
        return "", f"the member exits {member}: {pair.member_told.text()}"
    if found != expected:
        return "", f"weights {found} after a cut link, expected {expected}"
    return f"a cut link was noticed after {after:.2f} s, promised {promised:.2f} s, and survived", ""


def check():
    with tempfile.TemporaryDirectory() as name, Networks() as networks:
        training = Training(name)
        (training.folder / "token").touch(mode=0o600)
        (training.folder / "token").write_bytes(os.urandom(32))
        expected = json.loads(training.train("--json").stdout)["state_hash"]
        for transport in ("sockets", "gloo"):
            found, member = Pair(training, networks, ["--transport", transport]).end()
            if member:
                return "", f"{transport}: the member exits {member}"
            if found != expected:
                return "", f"{transport}: weights {found} over two networks, expected {expected}"
        seen, complaint = check_cut(training, networks)
        return f"over two networks, by sockets and by Gloo, the weights of one process; {seen}", complaint


sys.exit(tell("two networks", check))
