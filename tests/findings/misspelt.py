#!/usr/bin/env python3
# Misspelt flags, names and files of another form are answered with what was meant, and counts of one with the noun of one.
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", ROOT / "build/bin/frazil"))
GRAPH = "node1 -- Linear -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=8.0, parameter_size=8.0\n"
ONE_HOST = "cluster --devices 2 --memory 1GiB --within-bandwidth 1GB/s --out c.json"
WHAT_IF = "simulate --stages 2 --micro-batches 2 --schedule 1f1b"
MEANT = {
    "--verison": "did you mean --version?",
    "import kineto t.json --out m.json --optimizer adamm": "did you mean adam",
    "plan --graph g.txt": "frazil import pipedream",
    f"{ONE_HOST} --between infiniband": "did you mean infiniband-",
    f"{WHAT_IF} --forward 1ms": "expected --backward, or --backward-input and --backward-weight",
}


def exit_codes():
    """Exit codes as --help and as docs/commands.md tell them."""
    helped = subprocess.run([FRAZIL, "plan", "--help"], capture_output=True, text=True, timeout=60).stdout.partition("exit codes:\n")[2]
    told = dict(re.findall(r"^  ([\d+ n]+?)  +(.*)$", helped, re.MULTILINE))
    section = (ROOT / "docs/commands.md").read_text().partition("### Exit codes")[2].partition("\n###")[0]
    return told, dict(re.findall(r"^\| ([\d+ n]+) \| (.*) \|$", section.replace("`", ""), re.MULTILINE))


def find_complaints(folder):
    def run(line):
        return subprocess.run([FRAZIL, *line.split()], cwd=folder, capture_output=True, text=True, timeout=60)

    (folder / "g.txt").write_text(GRAPH)
    (folder / "t.json").write_text("{}")
    for line, meant in MEANT.items():
        done = run(line)
        if done.returncode != 2 or meant not in done.stderr:
            yield f"`frazil {line}` exits with {done.returncode}: {done.stderr.strip()}"
    told, documented = exit_codes()
    if told.keys() != documented.keys():
        yield f"--help has the exit codes {list(told)}, docs/commands.md {list(documented)}"
    for code, words in told.items():
        rest = documented.get(code, "").removeprefix(words)
        if not documented.get(code, "").startswith(words) or rest[:1] not in ("", ";", ":"):
            yield f"--help says `{words}` of exit code {code}, docs/commands.md `{documented.get(code)}`"
    run(ONE_HOST)
    if "published" in json.loads((folder / "c.json").read_text())["provenance"]["source"]:
        yield "a cluster of figures that were given says that they were published"
    run("export --to chrome --per-device --stages 2 --micro-batches 2 --schedule 1f1b --forward 1ms --backward 2ms --out ch")
    if not (folder / "ch.0.json").exists():
        yield "export --per-device --out ch writes no ch.0.json"
    usage = run("plan --help").stdout.partition("flags:")[0]
    if not all(flag in usage for flag in ("--forecast", "--planner", "--held", "--graph")):
        yield "the usage of plan lacks a question"


with tempfile.TemporaryDirectory() as name:
    complaints = list(find_complaints(pathlib.Path(name)))
print("; ".join(complaints) or f"{len(MEANT)} slips are answered with what was meant; exit codes are told alike")
sys.exit(1 if complaints else 0)
