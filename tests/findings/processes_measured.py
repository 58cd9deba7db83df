#!/usr/bin/env python3
# What lies between two processes can be measured, everything that prices a run over processes takes it, and what they measure
# together is on one clock.
"""Profiles the digits with --probe-links; simulates, trains and verifies over two processes with that cluster and with one
that knows nothing of processes; looks at the notes and at the time line that is left behind."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", TREE / "build/bin/frazil"))
DEFAULT = "the commit round is a default"

wrong = []


def call(*words, codes=(0,)):
    done = subprocess.run([FRAZIL, *map(str, words)], capture_output=True, text=True)
    if done.returncode not in codes:
        raise SystemExit(f"frazil {' '.join(map(str, words))}\nended with {done.returncode}: {done.stderr}")
    return done.stdout


def expect(holds, what):
    print(("as expected: " if holds else "WRONG: ") + what)
    if not holds:
        wrong.append(what)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run = folder / "run.json"
        config = json.loads((TREE / "exec/runs/digits.json").read_text())
        config["model"].update(dim=32, blocks=2)
        config["epochs"] = 1
        run.write_text(json.dumps(config))
        model, probed, plain, plan = (folder / file for file in ("model.json", "probed.json", "plain.json", "plan.json"))
        text = call("profile", "--run", run, "--devices", 2, "--rounds", 2, "--probe-links", "--out", model, "--cluster-out", probed)
        expect("16.00 MiB" in text and "commit round" in text, "the profile shows messages by size and the commit round")
        cluster = json.loads(probed.read_text())
        expect(set(cluster["link_classes"]) == {"process", "host"}, "the cluster has links within a process and between two")
        host = cluster["link_classes"]["host"]
        expect(host["latency_ns"] > 0 and host["bandwidth_bytes_per_second"] > 0, "the link between processes costs something")
        expect(cluster["commit_round_ns"] > 0, "the commit round is measured")
        less = {key: value for key, value in cluster.items() if key not in ("link_classes", "commit_round_ns")}
        plain.write_text(json.dumps(less))
        files = ["--profile", model, "--cluster"]
        call("plan", *files, plain, "--batch", config["batch_size"], "--micro-batch", config["micro_batch_size"], "--schedules", "1f1b",
             "--max-replicas", 1, "--out", plan)
        stages = len(json.loads(plan.read_text())["pipelines"][0]["stages"])
        if stages != 2:
            print(f"the machine is so busy that the planner takes {stages} stage")
            return 77
        for cluster, says in ((plain, True), (probed, False)):
            text = call("simulate", "--plan", plan, *files, cluster, "--procs", 2)
            expect((DEFAULT in text) == says, f"simulate with {cluster.name} {'says' if says else 'does not say'} that it takes a default")
            out = folder / f"out-{cluster.stem}"
            text = call("train", "--run", run, *files, cluster, "--plan", plan, "--procs", 2, "--keep-plan", "--no-freeze", "--steps", 20,
                        "--out", out, "--quiet")
            expect((DEFAULT in text) == says, f"train with {cluster.name} {'says' if says else 'does not say'} that it takes a default")
        head = (out / "phase-0/measured.csv").read_text().split("\n", 1)[0]
        expect(" clock_uncertainty_ns=" in head, f"the measured time line says how sure its clocks are: {head}")
        trace = json.loads((out / "phase-0/trace.json").read_text())
        expect(trace["otherData"].get("clock_uncertainty_ns", -1) >= 0, "so does the Chrome trace")
        rows = [line.split(",") for line in (out / "phase-0/measured.csv").read_text().splitlines()[2:]]
        slack = int(head.rsplit("=", 1)[1])
        ends = {(row[2], row[3]): (int(row[4]), int(row[5])) for row in rows}
        early = [key for key, (_, received) in ends.items() if key[1].startswith("1RECV_F")
                 and received + slack < ends[key[0], "0SEND_F" + key[1][7:]][0]]
        expect(not early, f"no message is received before it is sent ({len(early)} of {len(ends)} spans)")
        expect("sure to within" in call("report", out, "--out", folder / "report.html"), "the report tells it in a note")
        verdict = json.loads(call("verify", "--run", run, "--cluster", probed, "--plan", plan, "--procs", 2, "--blocks", 6, "--steps", 4,
                                  "--accept-load", "--quiet", "--json", codes=(0, 4, 5)))
        ratio = verdict["ratios"][0]
        expect(ratio["name"] == "step" and ratio["median"] > 0,
               f"verify compares the step over two processes: predicted / measured {ratio['median']:.3f}")
    for what in wrong:
        print(f"wrong: {what}")
    return 1 if wrong else 0


sys.exit(main())
