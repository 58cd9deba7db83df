#!/usr/bin/env python3
# reproduce sailor names what it read, and the errors of Sailor's own simulator stand beside its 15 plans alone.
"""Runs `frazil reproduce sailor` on Sailor's public folder (SAILOR_DATA, else data/sailor of the shared folder beside the
tree), and on copies with a plan less, with another measured time, with other layer times and with another model's name."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", TREE / "build/bin/frazil"))
DATA = pathlib.Path(os.environ.get("SAILOR_DATA", TREE.parent / "shared/data/sailor"))


def drop_a_plan(folder):
    sorted(folder.glob("validation/**/*.json"))[0].unlink()


def measure_otherwise(folder):
    file = sorted(folder.glob("validation/**/*.json"))[0]
    plan = json.loads(file.read_text())
    plan["real"] *= 1.03
    file.write_text(json.dumps(plan))


def time_otherwise(folder):
    file = next(folder.glob("layer_profiles/*/*/profile.json"))
    times = json.loads(file.read_text())
    times["8"]["4"]["3"][0] *= 1.5
    file.write_text(json.dumps(times))


def call_otherwise(folder):
    for name in ("configs/training_config_opt_350.json", "llm_info.json"):
        (folder / name).write_text((folder / name).read_text().replace("OPT-350", "OPT-351"))
    (folder / "layer_profiles/OPT-350").rename(folder / "layer_profiles/OPT-351")


def main():
    if not DATA.is_dir():
        print(f"{DATA} is absent")
        return 77
    wrong = []
    cases = [(None, True, 15, "OPT-350"), (drop_a_plan, False, 14, "OPT-350"), (measure_otherwise, False, 15, "OPT-350"),
             (time_otherwise, False, 15, "OPT-350"), (call_otherwise, False, 15, "OPT-351")]
    for change, is_sailors, plans, model in cases:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "sailor"
            shutil.copytree(DATA, folder, copy_function=shutil.copyfile)
            if change:
                change(folder)
            case = change.__name__ if change else "as it is"
            done = subprocess.run([FRAZIL, "reproduce", "sailor", "--data", str(folder)], capture_output=True, text=True)
            if done.returncode != 0:
                wrong.append(f"{case}: exit code {done.returncode}: {done.stderr.strip()}")
                continue
            if ("Sailor's own simulator" in done.stdout) != is_sailors:
                wrong.append(f"{case}: Sailor's own simulator is {'missing' if is_sailors else 'named'}")
            head = done.stdout.splitlines()[0]
            if f"{plans} measured plans" not in head or model not in head:
                wrong.append(f"{case}: the first line is `{head}`")
    if wrong:
        print("; ".join(wrong[:5]))
        return 1
    print(f"{len(cases)} folders are named as what they are")
    return 0


sys.exit(main())
