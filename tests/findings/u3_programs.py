#!/usr/bin/env python3
# The demo builds all programs, README has the command that does, and what a missing program is answered with is true.
"""Reads what the demo builds from the build folder of the front door, and asks a front door that lies alone."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = pathlib.Path(os.environ.get("FRAZIL", TREE / "build/bin/frazil")).resolve()
BUILD = FRAZIL.parent.parent


def target_of_demo():
    """The one target that the demo builds; README has the same command."""
    demo = re.search(r"cmake --build --preset release --target (\w+); \}", (TREE / "demo.sh").read_text())
    if not demo:
        return None, "demo.sh builds no single target"
    if f"cmake --build --preset release --target {demo[1]}" not in (TREE / "README.md").read_text():
        return None, f"README.md lacks the command that builds {demo[1]}"
    return demo[1], ""


def has_ninja():
    return bool(shutil.which("ninja")) and (BUILD / "build.ninja").exists()


def built_by(target):
    """The programs that Ninja makes for a target; None without Ninja."""
    if not has_ninja():
        return None
    told = subprocess.run(["ninja", "-C", str(BUILD), "-t", "inputs", target], capture_output=True, text=True)
    return set(re.findall(r"^bin/(frazil[\w-]*)$", told.stdout, re.M))


def find_complaint():
    target, complaint = target_of_demo()
    if complaint:
        return complaint, 0
    told = subprocess.run([FRAZIL, "help"], capture_output=True, text=True).stdout
    names = re.findall(r"^  (\w+) ", told, re.M)
    absent = {name for name in names if f"  {name} " in told and re.search(rf"^  {name} .*\(not built\)$", told, re.M)}
    without_torch = not (BUILD / "exec" / "libexec.a").exists()
    with_torch = ("profile", "train")
    built = built_by(target)
    expected = {"frazil", *(f"frazil-{name}" for name in names if not (without_torch and name in with_torch))}
    expected |= set() if without_torch else {"frazil-verify-plan", "frazil-member"}
    if built is not None and built != expected:
        missed, more = sorted(expected - built), sorted(built - expected)
        return f"target {target} does not build {missed}, and builds {more}", 0
    if absent and not without_torch:
        return f"{sorted(absent)} are not built", 0
    with tempfile.TemporaryDirectory() as folder:
        alone = pathlib.Path(folder) / "frazil"
        shutil.copy(FRAZIL, alone)
        for name in names:
            ended = subprocess.run([alone, name], capture_output=True, text=True)
            said = ended.stderr.strip()
            advises = "setup.sh" if without_torch and name in with_torch else f"--target {target}"
            wrong = "setup.sh" in said and not without_torch
            if ended.returncode != 1 or len(said.splitlines()) != 1 or advises not in said or wrong:
                return f"a missing frazil-{name} is answered with {ended.returncode}: {said}", 0
    return "", len(names)


def main():
    complaint, count = find_complaint()
    if complaint:
        print(complaint)
        return 1
    told = f"each of {count} subcommands that is missing is told how to be built"
    if not has_ninja():
        print(f"skipped: without ninja and a build folder of it, what the demo's target builds was not read; {told}")
        return 77
    print(f"the demo's target builds all programs, and {told}")
    return 0


sys.exit(main())
