#!/usr/bin/env python3
# A training over two processes makes a transition at nearly every step: it ends with the weights of one process, and neither process comes to hold
# more descriptors or threads. A member's memory stays where it was; the leader's grows by what it records of each phase, as in a run in one process.
import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from campaign import Campaign, Counted  # noqa: E402
from process_counts import find_slope, look_at, tell_slope  # noqa: E402
from process_trials import members_of  # noqa: E402
from training import FRAZIL, INPUTS, MODEL, Failed, Training, one_line  # noqa: E402

TRANSITIONS = 1000
STEPS_EACH = 1.3  # masks are drawn for each step, and some are drawn twice in a row
SAMPLES = 40
MOST_OF_A_MEMBER = 64 / 1024  # KiB a transition, of the upper end of the interval
MOST_BESIDE_ONE_PROCESS = 1.0  # KiB a transition, that the leader's slope may be above that of a run in one process
PATIENCE = 300


def prepare(folder):
    """A run that draws two of four blocks for each step, on links so slow that the best plan, and with it who holds which layer, follows the mask."""
    training = Training(folder)
    training.write_run("run.json", epochs=1_000_000, batch_size=4, micro_batch_size=1, model={**MODEL, "blocks": 4},
                       data={"kind": "synthetic", "train_samples": 400, "test_samples": 4, "seed": 3},
                       freeze={"policy": {"kind": "random", "active_layers": 2, "embedding_active": False, "start_step": 1, "interval_steps": 1}})
    made = training.run("profile", *"--run run.json --devices 2 --rounds 1 --steps 2 --memory-limit 1GiB --out model.json --cluster-out "
                        "cluster.json --quiet".split())
    if made.returncode:
        raise Failed(f"profile exits {made.returncode}: {one_line(made.stderr)}")
    model = json.loads((folder / "model.json").read_text())
    for layer in model["layers"]:
        for costs in layer["costs"]:
            costs.update({key: 1_000_000 for key, value in costs.items() if key.endswith("_ns") and value > 0})
    (folder / "model.json").write_text(json.dumps(model))
    cluster = json.loads((folder / "cluster.json").read_text())
    cluster["default_link"]["bandwidth_bytes_per_second"] = 4_000_000
    for number, device in enumerate(cluster["devices"]):
        device["process"] = number  # one process plans as two do
    (folder / "cluster.json").write_text(json.dumps(cluster))
    return training


class Watched:
    """A training whose processes are looked at each so many transitions."""

    def __init__(self, training, procs, steps):
        self.log = training.folder / f"over-{procs}" / "events.jsonl"
        self.place, self.transitions, self.moving = 0, 0, 0
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            self.process = subprocess.Popen([FRAZIL, "train", *INPUTS, "--procs", str(procs), "--steps", str(steps), "--out", self.log.parent.name, "--json"],
                                            cwd=training.folder, stdout=out, stderr=err, text=True)
            try:
                self.samples = self.watch(procs, steps)
                if self.process.wait(timeout=PATIENCE) != 0:
                    err.seek(0)
                    raise Failed(f"--procs {procs} exits {self.process.returncode}: {one_line(err.read())}")
                self.read_log()
            finally:
                self.process.kill()
                self.process.wait()
            out.seek(0)
            self.hash = json.loads(out.read())["state_hash"]

    def read_log(self):
        if not self.log.exists():
            return
        with self.log.open() as log:
            log.seek(self.place)
            text = log.read()
        text = text[:text.rfind("\n") + 1]
        self.place += len(text)
        for line in text.splitlines():
            if '"kind":"transition"' in line:
                self.transitions += 1
                self.moving += '"moved_bytes":0' not in line

    def watch(self, procs, steps):
        """Samples (transitions, what each process holds), the leader first. The first fifth of the steps warms up."""
        samples, due = [], steps / STEPS_EACH / 5
        while self.process.poll() is None:
            self.read_log()
            if self.transitions >= due:
                try:
                    pids = [self.process.pid, *members_of(self.process.pid)]
                    if len(pids) == procs:
                        samples.append((self.transitions, [look_at(pid) for pid in pids]))
                except (OSError, IndexError):
                    pass  # it is ending
                due += max(1, steps / STEPS_EACH / SAMPLES)
            time.sleep(0.01)
        return samples[:-1]  # the run may have been ending at the last one

    def slope(self, process):
        half = self.samples[len(self.samples) // 2:]
        return find_slope([(transitions, held[process].resident) for transitions, held in half])

    def counts(self, process):
        return sorted({held[process].counts for _, held in self.samples})


def check(over, one):
    complaints = []
    if over.hash != one.hash:
        complaints.append("other weights than in one process")
    for process, name in enumerate(("leader", "member")):
        if len(over.counts(process)) != 1:
            complaints.append(f"descriptors and threads of the {name} are {over.counts(process)}")
    if over.slope(1)[2] > MOST_OF_A_MEMBER:
        complaints.append(f"a member grows by {tell_slope(over.slope(1))} a transition")
    if over.slope(0)[1] > one.slope(0)[2] + MOST_BESIDE_ONE_PROCESS:
        complaints.append(f"the leader grows by {tell_slope(over.slope(0))} a transition, a run in one process by {tell_slope(one.slope(0))}")
    if over.moving * 2 < over.transitions:
        complaints.append(f"state moved in {over.moving} of {over.transitions} transitions only")
    return complaints


def do_all(campaign, folder):
    training = prepare(folder)
    steps = max(100, round(campaign.count * STEPS_EACH))
    one, over = Watched(training, 1, steps), Watched(training, 2, steps)
    complaints = check(over, one)
    for complaint in complaints:
        print(f"transitions: {complaint}", flush=True)
    leader, member = over.counts(0)[0], over.counts(1)[0]
    return Counted(over.transitions, f"between two processes, {over.moving} of which moved layers: the weights of one process; descriptors and threads at "
                   f"{len(over.samples)} looks {leader[0]} and {leader[1]} in the leader, {member[0]} and {member[1]} in the member; memory that no file "
                   f"holds grew by {tell_slope(over.slope(1))} a transition in the member, {tell_slope(over.slope(0))} in the leader, "
                   f"{tell_slope(one.slope(0))} in one process, which record each phase", len(complaints))


sys.exit(Campaign("transitions", TRANSITIONS, __doc__).run(do_all))
