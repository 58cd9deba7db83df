#!/usr/bin/env python3
# Layers keep the module paths of a trace, a plan is exported as torchtitan reads it, and the tutorial shows what loads it.
"""Goes from a trace with ranges named after modules to the job configuration of torchtitan, and from one without to a refusal."""

import ast
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from kineto_steps import CLUSTER, SAMPLES, Trace, shaped, trace_of_steps  # noqa: E402

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", TREE / "build/bin/frazil"))
MODULES = ["tok_embeddings", *(f"layers.{i}" for i in range(6)), "norm", "output"]
WIDTH = 64


def trace_of_modules(steps=3):
    """Steps of a model whose modules were marked: each takes 200 us forward and 400 us backward."""
    trace, data, gradient = Trace(), shaped([SAMPLES, WIDTH], [WIDTH, WIDTH]), shaped([SAMPLES, WIDTH])
    for step in range(steps):
        at, number = 20_000 * (step + 1), 100 * step
        trace.event("user_annotation", f"ProfilerStep#{step}", at, 15_000)
        for place, module in enumerate(MODULES):
            begin = at + 100 + 300 * place
            trace.event("user_annotation", f"layer:{module}", begin, 200)
            trace.event("cpu_op", "aten::linear", begin + 10, 180, **{"Sequence number": number + place, "Fwd thread id": 0}, **data)
        for turn, place in enumerate(reversed(range(len(MODULES)))):
            begin = at + 4000 + 700 * turn
            trace.backward("AddmmBackward0", begin, 400, number + place, **gradient)
            trace.backward("torch::autograd::AccumulateGrad", begin + 450, 50, **shaped([WIDTH, WIDTH]))
        trace.event("user_annotation", "Optimizer.step#AdamW.step", at + 13_000, 500)
    return trace.text()


class Folder:
    def __init__(self, name):
        self.path = pathlib.Path(name)
        (self.path / "cluster.json").write_text(json.dumps(CLUSTER))

    def run(self, line):
        return subprocess.run([FRAZIL, *line.split()], cwd=self.path, capture_output=True, text=True, timeout=60)

    def plan(self, trace):
        """Imports and plans; what went wrong."""
        (self.path / "trace.json").write_text(trace)
        for line in (f"import kineto trace.json --out model.json --micro-batch-size {SAMPLES}",
                     f"plan --profile model.json --cluster cluster.json --batch {8 * SAMPLES} --max-replicas 1 --schedules 1f1b "
                     "--no-recompute --out plan.json"):
            done = self.run(line)
            if done.returncode:
                return f"`frazil {line}` exits {done.returncode}: {done.stderr.strip()}"
        return ""

    def export(self, out="job"):
        return self.run(f"export --to torchtitan --plan plan.json --profile model.json --cluster cluster.json --out {out}")


def read_toml(text):
    try:
        import tomllib
    except ImportError:
        return None
    return tomllib.loads(text)


def check_job(folder):
    """The files hold the plan's own cut, degree and micro-batches."""
    done = folder.export()
    if done.returncode or done.stdout != "wrote job.csv\nwrote job.toml\n":
        return f"export exits {done.returncode}: {done.stdout}{done.stderr.strip()}"
    plan = json.loads((folder.path / "plan.json").read_text())
    stages = plan["pipelines"][0]["stages"]
    expected = [[MODULES[i] for first, last in stage["layers"] for i in range(first, last + 1)] for stage in stages]
    text = (folder.path / "job.toml").read_text()
    job = read_toml(text)
    if job is None:
        return "" if json.dumps(expected[0])[1:-1] in text else "job.toml lacks the modules of the first stage"
    parallelism = job["parallelism"]
    seen = (parallelism["module_fqns_per_model_part"], parallelism["pipeline_parallel_degree"], parallelism["pipeline_parallel_schedule_csv"],
            parallelism["pipeline_parallel_microbatch_size"], job["training"]["local_batch_size"])
    wanted = (expected, 2, "job.csv", SAMPLES, 8 * SAMPLES)
    if len(stages) != 2 or seen != wanted:
        return f"job.toml has {seen}, expected {wanted}"
    rows = (folder.path / "job.csv").read_text().splitlines()
    if len(rows) != 2 or any(set(re.findall(r"\d+([A-Z_]+)\d+", row)) - {"F", "B", "I", "W"} for row in rows):
        return f"job.csv holds more than compute: {rows}"
    return ""


def check_refusal(folder):
    """Layers that nobody named are no modules; nothing is written."""
    complaint = folder.plan(trace_of_steps(shapes=True))
    if complaint:
        return complaint
    done = folder.export("none")
    said = done.stderr.strip()
    if done.returncode != 2 or len(said.splitlines()) != 1 or "layer \"linear_0\"" not in said or "layer:layers.3" not in said:
        return f"layers named after operations are answered with {done.returncode}: {said}"
    left = sorted(path.name for path in folder.path.glob("none*"))
    return f"{left} are left behind" if left else ""


def check_tutorial():
    text = (TREE / "docs/tutorial.md").read_text()
    for needed in ("_load_csv(", "pipeline_parallel_schedule_csv", "module_fqns_per_model_part", "named_children()", "with_stack", "--to torchtitan"):
        if needed not in text:
            return f"docs/tutorial.md lacks {needed}"
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S):
        ast.parse(block)
    return ""


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(name)
        complaint = folder.plan(trace_of_modules()) or check_job(folder) or check_refusal(folder) or check_tutorial()
    print(complaint if complaint else f"{len(MODULES)} modules of a trace come out as torchtitan's stages; layers without paths are refused")
    return 1 if complaint else 0


sys.exit(main())
