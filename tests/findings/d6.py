#!/usr/bin/env python3
"""plan --forecast takes time in the length of the trace's file, not in the number of its steps."""
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.environ.get("FRAZIL", str(TREE / "build/bin/frazil"))
LAYERS = 8
MOST_SECONDS = 8  # of processor time; one a step would be hundreds
LAST = 10**9


def write_profile(folder):
    lines = ["name,forward_ms,backward_ms,activation_kB,parameter_kB"]
    lines += [f"layer{i},0.1,0.2,1,{1 + i % 2}" for i in range(LAYERS)]
    (folder / "layers.csv").write_text("\n".join(lines) + "\n")
    run(folder, ["import", "csv", "layers.csv", "--micro-batch-size", "1", "--out", "model.json"], 60)
    link = {"latency_ns": 2000, "bandwidth_bytes_per_second": 1_000_000_000}
    cluster = {
        "format": "frazil.cluster",
        "version": 1,
        "hosts": [{"name": "h", "memory_bytes": 1 << 34}],
        "devices": [{"name": f"d{i}", "host": "h", "memory_limit_bytes": 30_000} for i in range(4)],
        "default_link": link,
    }
    (folder / "cluster.json").write_text(json.dumps(cluster))


def write_trace(folder, name, steps):
    """Masks that freeze and thaw, at steps spread over the whole run: some 4.5 KB."""
    masks = [(steps * k // 64, "0" * (k % 5) + "1" * (LAYERS - k % 5)) for k in range(64)]
    header = {
        "format": "frazil.freeze_trace",
        "version": 1,
        "model_hash": "",
        "blocks": [f"layer{i}" for i in range(LAYERS)],
        "steps": steps,
        "events": len(masks),
        "batch_size": 8,
        "provenance": {},
    }
    lines = [json.dumps(header)]
    lines += [json.dumps({"step": step, "kind": "mask", "mask": mask}) for step, mask in masks]
    (folder / name).write_text("\n".join(lines) + "\n")
    return (folder / name).stat().st_size


def run(folder, arguments, seconds):
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    return subprocess.run([FRAZIL, *arguments], cwd=folder, capture_output=True, text=True, preexec_fn=limit)


def ask(folder, trace):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    question = ["plan", "--profile", "model.json", "--cluster", "cluster.json", "--batch", "8"]
    answer = run(folder, [*question, "--forecast", trace, "--json"], 4 * MOST_SECONDS)
    return answer, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_profile(folder)
        seen = []
        for steps in (6400, LAST):
            size = write_trace(folder, "trace.jsonl", steps)
            answer, seconds = ask(folder, "trace.jsonl")
            seen.append(f"{steps} steps in {size} bytes: exit code {answer.returncode}, {seconds:.1f} s")
            if answer.returncode != 0 or seconds > MOST_SECONDS:
                print("; ".join(seen), answer.stderr.strip())
                return 1
            online = json.loads(answer.stdout)["online"]
        # The rule that looks at each step stays within its guarantee over all of them.
        bound = online["worst_factor"] * online["hindsight_ns"] + online["worst_additive_ns"]
        if not LAST <= online["hindsight_ns"] <= online["paid_ns"] <= bound:
            print("the rule without a forecast is outside its guarantee:", online)
            return 1
        print("; ".join(seen))
        return 0


if __name__ == "__main__":
    sys.exit(main())
