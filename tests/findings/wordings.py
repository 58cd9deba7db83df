#!/usr/bin/env python3
# Wordings that stopped a reader are gone from programs and documents, and the glossary explains the signs of the tables.
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.environ.get("FRAZIL", str(ROOT / "build/bin/frazil"))
OLD = (
    "a few times", "gives the same bits", "flush at the end of a step", "schedule that flushes", "not here: holds", "least busiest stage",
    "as if messages stopped the work", "It proves that no such plan is faster", "with other cuts than those", "stages recompute",
    ", stash ", "all at most", "good input that cannot be done", "attacks each reader", "are written for, not tried",
    "keeps training samples apart", "What has not been run", "time ratio", "at symmetric prices", "found verb",
    "The house", "all that flush", "It proves that",
    "neither trace.jsonl", "After 1 intervals", "0.3333333333333333",
)
FORMS = {
    "a size of the last micro-batch behind a stroke": r"\d of \d+/\d",
    "a guarantee as a formula": r"never above [\d.]+ x",
    "a column of this name": r"(?m)^ .*\s{2}(limit|at most|all at most)(\s{2}|$)",
}
DOCUMENTS = ("README.md", "CONTRIBUTING.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")))
WORDS = ("I", "W", "hop", "span", "stash", "K", "`W alone`", "mask", "cut", "`4 of 8`")
VERBS = "plan cluster simulate train verify import export report ablate reproduce profile".split()
WHAT_IF = "--stages 4 --micro-batches 8 --forward 1ms --backward-input 1ms --backward-weight 1ms".split()


def run(folder, *arguments):
    ended = subprocess.run([FRAZIL, *arguments], cwd=folder, capture_output=True, text=True, timeout=60)
    return ended.stdout + ended.stderr


def list_texts(folder):
    """What programs and documents say, each with where it was seen."""
    (folder / "l.csv").write_text("name,forward_ms,backward_ms,activation_bytes,parameter_bytes\na,1,2,8,8\nb,1,2,8,8\n")
    devices = [{"name": name, "host": "h", "memory_limit_bytes": 1 << 20} for name in ("d0", "d1")]
    cluster = {"format": "frazil.cluster", "version": 1, "hosts": [{"name": "h", "memory_bytes": 1}], "devices": devices}
    (folder / "c.json").write_text(json.dumps(cluster))
    files = ["--profile", "m.json", "--cluster", "c.json"]
    commands = [
        ["import", "csv", "l.csv", "--out", "m.json"], ["plan", *files, "--batch", "7", "--micro-batch", "4", "--explain", "--out", "p.json"],
        ["simulate", "--plan", "p.json", *files], ["simulate", *WHAT_IF, "--compare", "--fits", "2"], ["report", "l.csv"],
        ["fly"], *([verb, "--help"] for verb in VERBS),
    ]
    for command in commands:
        yield "frazil " + " ".join(command), run(folder, *command)
    for document in DOCUMENTS:
        yield document, (ROOT / document).read_text()


def main():
    seen, places = [], 0
    with tempfile.TemporaryDirectory() as name:
        for place, text in list_texts(pathlib.Path(name)):
            places += 1
            joined = re.sub(r"\s+", " ", text)
            seen += [f"{place} says `{old.strip()}`" for old in OLD if old in joined]
            seen += [f"{place} has {what}: `{found[0]}`" for what, form in FORMS.items() if (found := re.search(form, text))]
    glossary = (ROOT / "docs/glossary.md").read_text()
    seen += [f"docs/glossary.md lacks {word}" for word in WORDS if f"\n- **{word}**" not in glossary]
    print(f"{len(seen)} old ones: {'; '.join(seen[:6])}" if seen else f"none of {len(OLD) + len(FORMS)} old ones is left in {places} texts")
    return 1 if seen else 0


sys.exit(main())
