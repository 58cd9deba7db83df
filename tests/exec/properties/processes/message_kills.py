#!/usr/bin/env python3
"""Kills a real leader or a real member at a message of a transition or of a commit round: a member's death leaves the weights of an undisturbed run, at once or, where it took layers along, by --resume; after a leader's the members end with code 6 and --resume does.

usage: message_kills.py [--kills N] [--seed N]
N of the moments are drawn, default 5; 0: every one. FRAZIL names the program, default build/bin/frazil of this tree.
Exit code 0: all held; 1: something did not; 77: the program is not there.
"""
import argparse
import json
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading

TREE = pathlib.Path(__file__).resolve().parents[4]
sys.path.insert(0, str(TREE / "tests/findings/support"))
from training import FRAZIL, INPUTS, Failed, Training, one_line, tell  # noqa: E402

HEAD = struct.Struct("<4sHHI")  # of a control message: magic, version, 0, bytes of the body
MAGIC = b"FZCT"


def alternatives(source, variant, ending):
    """The alternatives of a variant, as its source lists them, which is how messages number them."""
    listed = re.search(rf"using {variant} =\s*std::variant<([^>]*)>", (TREE / source).read_text())[1]
    return [word.strip().removesuffix(ending).lower() for word in listed.split(",")]


KINDS = alternatives("exec/control/control_message.h", "ControlMessage", "Message")
JOBS = alternatives("exec/run/jobs/job_codec.h", "Job", "Job")
MESSAGES = ("prepare", "prepare done", "take", "take done", "adopt", "adopt done", "step", "ready", "commit", "step done")


class Trap:
    """Kills a process, or stops it, at the n-th message of a name between the leader and one member."""

    def __init__(self, message, nth, before, number=signal.SIGKILL):
        self.message, self.nth, self.before, self.number = message, nth, before, number
        self.jobs, self.seen, self.victim, self.is_sprung = {}, 0, None, False
        self.lock = threading.Lock()

    def name(self, body):
        kind = KINDS[struct.unpack_from("<I", body)[0]]
        if kind == "order":
            _, number, _, job = struct.unpack_from("<IQQI", body)
            self.jobs[number] = JOBS[job]
            return self.jobs[number]
        if kind == "answer":
            return self.jobs[struct.unpack_from("<IQ", body)[1]] + " done"
        return kind

    def meets(self, body):
        with self.lock:
            if self.name(body) != self.message:
                return False
            self.seen += 1
            self.is_sprung = self.is_sprung or self.seen == self.nth
            return self.seen == self.nth

    def spring(self):
        os.kill(self.victim, self.number)


class Relay:
    """Stands between a member and the leader, for whatever connections the member opens."""

    def __init__(self, port, trap):
        self.port, self.trap = port, trap
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.own_port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                caller, _ = self.listener.accept()
                called = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                return
            for one in (caller, called):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for ends in ((caller, called), (called, caller)):
                threading.Thread(target=self.hand_on, args=ends, daemon=True).start()

    def hand_on(self, source, target):
        held = b""  # of a control message, the part that has come
        try:
            while piece := source.recv(1 << 16):
                held += piece
                while held:
                    if not held.startswith(MAGIC):  # a process that joins, or tensors
                        target.sendall(held)
                        held = b""
                        break
                    if len(held) < HEAD.size or len(held) < (end := HEAD.size + HEAD.unpack_from(held)[3]):
                        break
                    message, held = held[:end], held[end:]
                    meets = self.trap is not None and self.trap.meets(message[HEAD.size:])
                    if meets and self.trap.before:
                        self.trap.spring()
                    target.sendall(message)
                    if meets and not self.trap.before:
                        self.trap.spring()
        except OSError:
            pass
        for one in (source, target):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class World:
    """A leader and two members, of which the first has the trap between itself and the leader."""

    def __init__(self, training, name, trap, victim):
        self.leader = self.start(training, [*INPUTS, "--listen", "127.0.0.1:0", "--procs", "3", "--json", "--out", name, "--checkpoint-every", "5"])
        self.told = ""
        while "listening at" not in self.told:
            line = self.leader.stderr.readline()
            if not line:
                raise Failed(f"the leader does not listen: {one_line(self.told)}")
            self.told += line
        port = int(re.search(r"listening at \S+:(\d+)", self.told)[1])
        self.members = []
        for number in range(2):
            relay = Relay(port, trap if number == 0 else None)
            self.members.append(self.start(training, ["--join", f"127.0.0.1:{relay.own_port}"]))
        self.victim = [self.leader, *self.members][victim]
        trap.victim = self.victim.pid

    @staticmethod
    def start(training, words):
        return subprocess.Popen([FRAZIL, "train", *words], cwd=training.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self):
        try:
            out, err = self.leader.communicate(timeout=100)
            self.victim.kill()  # one that was stopped ends now
            members = [member.communicate(timeout=20) and member.returncode for member in self.members]
        except subprocess.TimeoutExpired as late:
            raise Failed(str(late)) from late
        finally:
            for process in (self.leader, *self.members):
                process.kill()
        return self.leader.returncode, out, err, members


def takes_layers_along(code, err):
    """Whether the run has ended because nobody holds what the lost process held: those who launched it may begin it anew."""
    return code == 6 and "nobody else holds" in err


def resume(training, name):
    again = training.run("train", "--resume", name, "--json", "--quiet")
    if again.returncode:
        raise Failed(f"--resume {name} exits {again.returncode}: {one_line(again.stderr)}")
    return again.stdout


def try_one(training, name, moment, expected):
    victim, message, before = moment
    where = f"{('leader', 'a member', 'the other member')[victim]} killed {'before' if before else 'after'} {message}"
    # The second of each: the first plan has come into force, and the mask has changed since.
    trap = Trap(message, 2, before)
    world = World(training, name, trap, victim)
    code, out, err, members = world.end()
    if not trap.is_sprung:
        return f"{where}: there was no such message"
    if victim == 0 and (code != -signal.SIGKILL or members != [6, 6]):
        return f"{where}: the leader exits {code}, members {members}"
    if victim > 0 and code and not takes_layers_along(code, err):
        return f"{where}: exit {code}: {one_line(err)}"
    if code:
        out = resume(training, name)
    if json.loads(out)["state_hash"] != expected:
        return f"{where}: other weights than without a kill"
    return ""


def settle_costs(folder):
    """Gives all layers the same time, and devices and links none: on a busy machine a plan might leave a member out, who then gets no messages."""
    model, cluster = (json.loads((folder / name).read_text()) for name in ("model.json", "cluster.json"))
    for cost in (cost for layer in model["layers"] for cost in layer["costs"]):
        cost.update({key: 1_000_000 * cost["micro_batch_size"] for key in cost if key.endswith("_ns")})
    for device in cluster["devices"]:
        device.update(action_overhead_ns=0, step_overhead_ns=0)
    cluster["default_link"] = {"latency_ns": 0, "bandwidth_bytes_per_second": 10**12}
    for name, value in (("model.json", model), ("cluster.json", cluster)):
        (folder / name).write_text(json.dumps(value))


def check_stop(training, expected):
    """A member that stops answering in the very first step, of which nothing has been measured, is not waited for without end."""
    code, out, err, _ = World(training, "stop", Trap("step", 1, True, signal.SIGSTOP), 1).end()
    if "not been heard of" not in err:
        return f"a member stopped in the first step is told as: {one_line(err)}"
    if takes_layers_along(code, err):
        out = resume(training, "stop")
    if json.loads(out)["state_hash"] != expected:
        return "other weights after a member was stopped in the first step"
    return ""


def check(arguments):
    moments = [(victim, message, before) for victim in range(3) for message in MESSAGES for before in (True, False)]
    if arguments.kills:
        moments = random.Random(arguments.seed).sample(moments, min(arguments.kills, len(moments)))
    with tempfile.TemporaryDirectory() as folder:
        training = Training(folder)
        made = training.run("profile", *"--run run.json --devices 3 --rounds 1 --steps 2 --memory-limit 1GiB --out model.json "
                            "--cluster-out cluster.json --quiet".split())
        if made.returncode:
            raise Failed(f"profile exits {made.returncode}: {one_line(made.stderr)}")
        settle_costs(training.folder)
        training.write_run("run.json", epochs=12, freeze={"alpha": 0.5, "start_epoch": 3, "interval_epochs": 3})
        expected = json.loads(training.train("--json").stdout)["state_hash"]
        for number, moment in enumerate(moments):
            if complaint := try_one(training, f"kill-{number}", moment, expected):
                return "", f"seed {arguments.seed}: {complaint}"
        if complaint := check_stop(training, expected):
            return "", complaint
    return f"{len(moments)} kills at messages: every run ends with the weights of an undisturbed one", ""


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--kills", type=int, default=5)
parser.add_argument("--seed", type=int, default=1)
given = parser.parse_args()
sys.exit(tell("message kills", lambda: check(given)))
