#!/usr/bin/env python3
"""A network teaches a smaller one the digits, block by block, in each of Pipe-BD's ways: the time of a step, predicted and measured.

compare.py [--workload vgg|vit] [--epochs N] [--rounds N] [--elastic SEEDS] [--programs FOLDER] [FOLDER]: trains the teacher, then profiles and runs every
method on two devices; results go to FOLDER (default distillation-methods/), the table to stdout and to FOLDER/table.txt. Exit code 0: the methods agree in all bits.
A machine changes its speed, so each method is predicted by a profile that is made right before it. The first round trains for all epochs; with --rounds,
all methods follow again for a few, and the table tells medians, and the least and the greatest ratio. The methods:
  DP      data parallel: one block after another on all devices, which share the micro-batches; the teacher runs up to that block each time
  LS      layerwise scheduling: each block alone on a device, the longest first; devices work side by side, each in a process of its own, for which they
          are profiled alike
  TR      teacher relaying: a stage of blocks to each device, which hands the teacher's outputs on; all wait for each other after each step
  TR+DPU  the same without that wait
  AHD     the plan of `frazil plan --planner pipe-bd`, without that wait: automatic hybrid distribution, whose stages may have several devices, which
          share the samples; each normalises its own ("local_statistics")
  Frazil  the plan that `frazil plan` finds, of those that wait and of all
All but AHD leave a student of equal bits, which is checked block by block; beside them stands a student that learnt without a teacher.
With --elastic 8, a number of seeds, or --elastic 11,12,13, a list of them, `frazil ablate` instead compares the best plan that never changes with a run whose
blocks freeze, the first one earliest, each at the end of a learning rate of its own (FreezeOut); what is left is planned anew, and reads what the teacher
has once put out from a cache.
The workloads:
  vgg     convolutions in three stages teach depthwise separable ones
  vit     six transformer blocks teach three, two to one
"""

import argparse
import concurrent.futures
import json
import pathlib
import statistics
import subprocess
import sys

DEVICES = 2
EPOCHS_AGAIN = 5  # of a round after the first: some hundred steps
STEPS_AHEAD = 31
AIM = 0.08  # of predicted speed-ups
MEASURED = "--profile run-profile.json --cluster cluster.json"
VGG = {"kind": "vgg", "widths": [24, 48, 64], "convolutions": 2}
VIT = {"kind": "vit", "patch": 2, "dim": 48, "heads": 4}
WORKLOADS = {
    "vgg": {"teacher": VGG, "student": {**VGG, "separable": True}},
    "vit": {"teacher": {**VIT, "blocks": 6}, "student": {**VIT, "blocks": 3},
            "blocks": [*({"teacher": f"block{2 * i}", "student": f"block{i}"} for i in (1, 2, 3)), "head"]},
}
FREEZING = {"kind": "freezeout", "t0": 0.4, "power": 1}
RUN = {
    "format": "frazil.run", "version": 1, "data": {"kind": "digits"}, "batch_size": 32, "micro_batch_size": 16, "seed": 1,
    "optimizer": {"kind": "adamw", "learning_rate": 0.002, "weight_decay": 0.01},
}


class Frazil:
    """The programs, run in one folder."""

    def __init__(self, programs, folder):
        self.program, self.folder = str((programs / "frazil").resolve()), folder

    def command(self, verb, flags, core=None):
        pinned = [] if core is None else ["taskset", "-c", str(core)]
        return [*pinned, self.program, verb, *flags.split()]

    def run(self, verb, flags, core=None):
        done = subprocess.run(self.command(verb, flags, core), cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"compare.py: {verb} {flags} ends with {done.returncode}: {done.stderr or done.stdout}")
        return done.stdout

    def answer(self, verb, flags, core=None):
        return json.loads(self.run(verb, flags + " --json", core))

    def write(self, name, what):
        (self.folder / name).write_text(json.dumps(what, indent=1) + "\n", encoding="utf-8")

    def read(self, name):
        return json.loads((self.folder / name).read_text(encoding="utf-8"))


class Comparison:
    def __init__(self, frazil, workload, epochs):
        self.frazil, self.networks, self.epochs = frazil, WORKLOADS[workload], epochs

    def prepare(self):
        """Trains the teacher, and profiles the distillation."""
        self.configure("teacher", self.networks["teacher"], epochs=self.epochs)
        self.configure("alone", self.networks["student"], epochs=self.epochs)
        for name in ("teacher", "alone"):
            self.profile(name)
            answer = self.frazil.answer("train", f"--run {name}.json --profile {name}-profile.json --cluster cluster.json --out {name} --force --quiet")
            print(f"{'the teacher' if name == 'teacher' else 'the student without a teacher'}: {100 * answer['accuracy']:.2f} %", flush=True)
        self.profile_again()

    def profile_again(self):
        self.configure("run", self.distillation(), epochs=self.epochs)
        self.profile("run")
        self.model = self.frazil.read("run-profile.json")
        self.layers, self.blocks = self.model["layers"], len(self.model["blocks"]) - 1

    def distillation(self):
        return {"kind": "distillation", "teacher_weights": "teacher/weights.safetensors", **self.networks}

    def configure(self, name, model, **more):
        self.frazil.write(f"{name}.json", {**RUN, "model": model, **more})

    def profile(self, name):
        self.frazil.run("profile", f"--run {name}.json --devices {DEVICES} --memory-limit 1GiB --quiet --out {name}-profile.json --cluster-out cluster.json")

    def profile_lone(self, device):
        """As a run on this device alone, in a process of its own, takes its steps."""
        self.frazil.run("profile", f"--run run.json --devices 1 --memory-limit 1GiB --quiet --out lone{device}-profile.json --cluster-out lone{device}.json", device)

    def plan(self, name, pipelines, mask=None, steps_ahead=0):
        """Pipelines are lists of (first layer, device); they take the micro-batches of a step in turn."""
        each = RUN["batch_size"] // RUN["micro_batch_size"] // len(pipelines)
        plan = self.frazil.read("best.json")
        plan.pop("steps_ahead", None)
        plan["pipelines"] = [
            {"stages": [{"layers": [[first, end - 1]], "devices": [device]}
                        for (first, device), end in zip(stages, [first for first, _ in stages[1:]] + [len(self.layers)])],
             "micro_batches": [[index * each, (index + 1) * each - 1]]}
            for index, stages in enumerate(pipelines)]
        plan["schedule"] = {"name": "gpipe"}
        plan["mask"] = "1" * (self.blocks + 1)
        if steps_ahead:
            plan["steps_ahead"] = steps_ahead
        self.frazil.write(f"{name}.json", plan)  # of a run, which begins with everything active
        self.frazil.write(f"{name}-masked.json", {**plan, "mask": mask or plan["mask"]})
        return name

    def alone(self, block):
        return "".join("1" if index in (block, self.blocks) else "0" for index in range(self.blocks + 1))

    def predict(self, plan, measured=MEASURED):
        masked = self.frazil.folder / f"{plan}-masked.json"
        answer = self.frazil.answer("simulate", f"--plan {masked.name if masked.exists() else plan + '.json'} {measured}")
        return answer.get("step_ns", answer["makespan_ns"])

    def flags(self, plan, run="run", measured=MEASURED):
        return f"--run {run}.json {measured} --plan {plan}.json --keep-plan --out {plan} --force --quiet"

    def train(self, plan, run="run"):
        return self.frazil.answer("train", self.flags(plan, run=run))

    def block_run(self, block):
        mask = self.alone(block)
        self.configure(f"block{block}", self.distillation(), epochs=self.epochs, freeze={"policy": {"kind": "static", "mask": mask}})
        return f"block{block}", mask

    def weights(self, folder):
        """The bytes of the student's tensors by name."""
        text = (self.frazil.folder / folder / "weights.safetensors").read_bytes()
        end = 8 + int.from_bytes(text[:8], "little")
        header = json.loads(text[8:end])
        return {name: text[end + one["data_offsets"][0]:end + one["data_offsets"][1]] for name, one in header.items() if name != "__metadata__"}

    def differing(self, folders):
        """The blocks whose bits in these runs, one for each block, are not those of teacher relaying."""
        expected, owner = self.weights("tr"), self.owners()
        return [self.model["blocks"][block] for block, folder in enumerate(folders)
                if any(own != expected[name] for name, own in self.weights(folder).items() if owner[name] == block)]

    def owners(self):
        """The block by tensor of the student: in the run of that block alone it is another than in the others, where it stays as it began."""
        runs = [self.weights(f"ls{block}") for block in range(self.blocks)]
        return {name: next(block for block, run in enumerate(runs) if [other[name] for other in runs].count(run[name]) == 1) for name in runs[0]}

    def check_bits(self):
        runs = {"DP": [f"dp{block}" for block in range(self.blocks)], "LS": [f"ls{block}" for block in range(self.blocks)]}
        runs |= {name: [name] * self.blocks for name in ("dpu", "found", "found-ahead")}
        wrong = [f"{name}: {', '.join(blocks)}" for name, folders in runs.items() if (blocks := self.differing(folders))]
        print("the student has the bits of teacher relaying in every method" if not wrong else f"OTHER BITS than by teacher relaying: {'; '.join(wrong)}")
        return not wrong

    def shrink(self, seeds):
        self.configure("elastic", self.distillation(), epochs=self.epochs, freeze={"policy": FREEZING}, cache={"kind": "on"})
        print(self.frazil.run("ablate", "--run elastic.json --profile run-profile.json --cluster cluster.json --out elastic --csv elastic.csv --quiet "
                              f"--arms unfrozen,all,shorter {seeds}"), end="")

    def data_parallel(self):
        predicted, measured = 0, 0
        for block in range(self.blocks):
            run, mask = self.block_run(block)
            plan = self.plan(f"dp{block}", [[(0, device)] for device in range(DEVICES)], mask)
            predicted += self.predict(plan)
            measured += step_time(self.train(plan, run))
        return predicted, measured

    def layerwise(self):
        """The longest block goes to the device that has least to do; each device runs its blocks in turn, in processes of its own."""
        jobs, loads = [[] for _ in range(DEVICES)], [0] * DEVICES
        plans = [self.plan(f"ls{block}", [[(0, 0)]], self.block_run(block)[1]) for block in range(self.blocks)]
        with concurrent.futures.ThreadPoolExecutor(DEVICES) as devices:
            list(devices.map(self.profile_lone, range(DEVICES)))
            times = [[self.predict(plan, lone(device)) for plan in plans] for device in range(DEVICES)]
            for block in sorted(range(self.blocks), key=times[0].__getitem__, reverse=True):
                device = loads.index(min(loads))
                jobs[device].append(block)
                loads[device] += times[device][block]
            measured = list(devices.map(self.train_in_turn, range(DEVICES), jobs))
        return max(loads), max(measured)

    def train_in_turn(self, device, blocks):
        """The time of a step over the blocks, each of which is trained by itself on this device."""
        return sum(step_time(self.frazil.answer("train", self.flags(f"ls{block}", f"block{block}", lone(device)), device)) for block in blocks)

    def relay(self, name, steps_ahead):
        """The cut between blocks whose simulated step is shortest."""
        best = None
        for block in range(1, self.blocks):
            first = next(index for index, layer in enumerate(self.layers) if layer["block"] == block)
            plan = self.plan(name, [[(0, 0), (first, 1)]], steps_ahead=steps_ahead)
            best = min(best or (self.predict(plan) + 1, 0), (self.predict(plan), first))
        plan = self.plan(name, [[(0, 0), (best[1], 1)]], steps_ahead=steps_ahead)
        return self.run_plan(plan)

    def hybrid(self):
        self.frazil.run("plan", f"--planner pipe-bd --profile run-profile.json --cluster cluster.json --batch {RUN['batch_size']} --out ahd.json")
        size = self.frazil.read("ahd.json")["micro_batch_size"]
        fast = {"micro_batch_size": size, "reduction": "fast", "local_statistics": True}
        self.configure("fast", self.distillation(), epochs=self.epochs, **fast)
        return self.run_plan("ahd", "fast")

    def run_plan(self, plan, run="run"):
        answer = self.train(plan, run)
        return self.predict(plan), step_time(answer), answer

    def find(self, name, steps_ahead=0):
        self.frazil.run("plan", f"--profile run-profile.json --cluster cluster.json --batch {RUN['batch_size']} --micro-batch {RUN['micro_batch_size']} "
                                f"--steps-ahead {steps_ahead} --out {name}.json")
        return name

    def methods(self):
        return {
            "DP": self.data_parallel, "LS": self.layerwise, "TR": lambda: self.relay("tr", 0), "TR+DPU": lambda: self.relay("dpu", STEPS_AHEAD),
            "AHD": self.hybrid, "Frazil": lambda: self.run_plan(self.find("found")),
            "Frazil, ahead": lambda: self.run_plan(self.find("found-ahead", STEPS_AHEAD))}

    def compare(self):
        """Predicted and measured times by method, and the answer of a run of all blocks."""
        rows = {}
        for name, run in self.methods().items():
            self.profile_again()
            self.find("best")
            rows[name] = run()
        return rows


def lone(device):
    return f"--profile lone{device}-profile.json --cluster lone{device}.json"


def step_time(answer):
    """The measured time of a step in ns: of whole batches, without evaluations."""
    return sum(phase["measured_time_ns"] for phase in answer["phases"]) / sum(phase["steps"] for phase in answer["phases"])


def seeds_flag(text):
    """The flag of `frazil ablate` that names these seeds."""
    seeds = text.split(",")
    if not all(seed.isdecimal() for seed in seeds) or seeds == ["0"] or len(set(seeds)) < len(seeds):
        raise argparse.ArgumentTypeError(f"found {text}, expected a number of seeds or a list of different ones, as 8 or 11,12,13")
    return f"--seed-list {text}" if len(seeds) > 1 else f"--seeds {text}"


def print_table(rounds, place):
    def middle(number):
        return statistics.median(number(rows) for rows in rounds)

    def speedup(base, name):
        return [middle(lambda rows: rows[base][side] / rows[name][side]) for side in (0, 1)]

    lines = [f"{'method':<14}  step, predicted  measured  predicted / measured  over DP, predicted  measured  over LS, predicted  measured  accuracy"]
    for name, (_, _, *answer) in rounds[0].items():
        ratios = [rows[name][0] / rows[name][1] for rows in rounds]
        ratio = f"{statistics.median(ratios):.3f}" + (f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(rounds) > 1 else "")
        against = ["{:>18.2f}  {:>8.2f}".format(*speedup(base, name)) for base in ("DP", "LS")]
        told = f"{100 * answer[0]['accuracy']:>6.2f} %" if answer else ""
        step = f"{middle(lambda rows: rows[name][0]) / 1e6:>12.3f} ms  {middle(lambda rows: rows[name][1]) / 1e6:>5.3f} ms"
        lines.append(f"{name:<14}  {step}  {ratio:>20}  {'  '.join(against)}  {told}".rstrip())
    for base, others in (("DP", list(rounds[0])[1:]), ("LS", list(rounds[0])[2:])):
        close = [name for name in others for predicted, measured in [speedup(base, name)] if abs(predicted / measured - 1) <= AIM]
        lines.append(f"{len(close)} of {len(others)} speed-ups over {base} are predicted within {AIM:.0%}")
    text = "\n".join(lines) + "\n"
    print(text, end="")
    place.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=pathlib.Path("distillation-methods"))
    parser.add_argument("--workload", choices=WORKLOADS, default="vgg")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--elastic", metavar="SEEDS", type=seeds_flag)
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "build/bin")
    arguments = parser.parse_args()
    for flag, number in (("--rounds", arguments.rounds), ("--epochs", arguments.epochs)):
        if number < 1:
            parser.error(f"found {flag} {number}, expected 1 or more")
    if not (arguments.programs / "frazil-train").exists():
        parser.error(f"found no {arguments.programs / 'frazil-train'}, expected what a build leaves")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    comparison = Comparison(Frazil(arguments.programs, arguments.folder), arguments.workload, arguments.epochs)
    comparison.prepare()
    if arguments.elastic:
        comparison.shrink(arguments.elastic)
        return 0
    rounds, is_equal = [], True
    for _ in range(arguments.rounds):
        rounds.append(comparison.compare())
        is_equal = comparison.check_bits() and is_equal
        comparison.epochs = EPOCHS_AGAIN
    print_table(rounds, arguments.folder / "table.txt")
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main())
