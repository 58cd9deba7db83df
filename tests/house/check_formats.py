#!/usr/bin/env python3
"""check_formats.py ROOT [--programs BUILD/bin]: docs/formats.md and docs/commands.md are complete.

In formats.md, the tables of keys in the section of a format (those whose first column is called `key`) name every key that the readers of
that format take, and no other. The readers' keys stand in the sources as `fields.required("key")`, `fields.optional("key")`, or as
the first text of a call that is handed the fields, `take(fields, "key", ...)`, or of a lambda that reads the key that it is handed. A function that puts a key together (`tier + "_latency_ns"`)
counts with the texts that it is called with.

In commands.md, the tables of flags of each subcommand name every flag that its `add_options` describe, and no other; with --programs the
flags are those that the programs list with --help. Prints `file: sentence` for each fault, and exits with 1 if there is one.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

# Section of formats.md -> the sources that read this format.
READERS = {
    "Run configuration": ("exec/config/*.cpp", "exec/models/choice/*.cpp", "planner/freezing/[!f]*.cpp", "planner/freezing/freeze_[!s]*.cpp", "profiles/json_settings.cpp"),
    "Model profile": ("profiles/model_profile_json.cpp",),
    "Cluster": ("profiles/cluster_json.cpp",),
    "Plan": ("planner/plan/plan_json.cpp",),
    "Baseline": ("analysis/guard/baseline_json.cpp",),
    "Freeze trace and event log": ("traces/freeze_trace.cpp", "traces/drift_event.cpp"),
    "Folder of a run": ("exec/train/stored_run.cpp",),
    "Folder of an ablation": ("analysis/ablation/pair_result.cpp",),
    "Pilot of an ablation": ("analysis/ablation/pilot.cpp",),
    "Kernels of a run": ("exec/checkpoint/run_kernels.cpp",),
    "Checkpoint": ("exec/checkpoint/checkpoint_header.cpp", "exec/train/freeze_control.cpp", "planner/freezing/freeze_state_json.cpp"),
}
SUBCOMMANDS = "profile plan cluster simulate train verify import export report check ablate reproduce".split()
COMMON = "Every subcommand"  # the section with the flags that all have
STRING = r'"(?:[^"\\]|\\.)*"'
FUNCTION = re.compile(r"^\S[^;{}()]*?\b(\w+)\(([^()]*)\)[^;{}]*\{\n(.*?)^\}", re.M | re.S)


def read_sources(root, patterns):
    """The text of all sources that match, without comments."""
    paths = sorted(path for pattern in patterns for path in root.glob(pattern))
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    return re.sub(rf"({STRING})|//[^\n]*", lambda found: found[1] or "", text)


def read_keys(text):
    """The keys that readers in this text take."""
    names = "|".join({"fields", *re.findall(r"\bJsonFields&?\s+(\w+)", text)})
    keys = set(re.findall(rf'(?:\b(?:{names})|JsonFields\([^()]*\))\.(?:required|optional)\(\s*"(\w+)"', text))
    calls = re.findall(rf'\b(\w+)\(\s*(?:{names}),\s*"(\w*)"', text)
    endings = find_endings(text)
    for function, begin in calls:
        keys |= {begin + ending for ending in endings.get(function, [""])}
    for function, name in re.findall(r"const auto (\w+) = \[&\]\(const char\* (\w+)\) \{[^}]*\.(?:required|optional)\(\2\)", text):
        keys |= set(re.findall(rf'\b{function}\("(\w+)"\)', text))
    return keys | ({"format", "version"} if "expect_format(" in text else set())


def find_endings(text):
    """Functions that add something to the key that they are handed -> what they add."""
    endings = {}
    for function, parameters, body in FUNCTION.findall(text):
        added = [end for name, end in re.findall(r'\b(\w+) \+ "(\w+)"', body) if re.search(rf"\b{name}\b", parameters)]
        if added:
            endings[function] = added
    return endings


def read_sections(path):
    """The text below each heading of the second level, without fenced blocks."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    parts = re.split(r"^## (.+)$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def read_tables(section, title):
    """The first cells of all tables whose first column has this title."""
    cells, is_wanted = [], False
    for line in section.splitlines():
        if not line.startswith("|"):
            is_wanted = False
            continue
        first = line.split("|")[1].strip()
        if is_wanted:
            cells.append(first)
        is_wanted = is_wanted or first == title
    return cells


def check_formats(root):
    sections = read_sections(root / "docs" / "formats.md")
    for title, patterns in READERS.items():
        known, section = read_keys(read_sources(root, patterns)), sections.get(title, "")
        if not known:
            yield f"docs/formats.md: found no reader of `{title}` in {', '.join(patterns)}"
        told = {key for cell in read_tables(section, "key") for key in re.findall(r"`(\w+)`", cell)}
        for key in sorted(known - told):
            yield f"docs/formats.md: section `{title}` lacks the key `{key}`"
        for key in sorted(told - known):
            yield f"docs/formats.md: section `{title}` has the key `{key}`, which no reader takes"


def read_options(text):
    """The names of the flags that a source describes with add_options."""
    flags = set()
    for chain in re.findall(rf'add_options\(\)((?:{STRING}|[^";])*);', text):
        flags |= set(re.findall(rf'\(\s*"([a-z][a-z-]*)",\s*(?:{STRING}|\w+(?:::\w+|\())', chain))
    return flags


def flags_in_sources(root, name):
    """The flags of a subcommand as its main describes them, by itself and through functions of planner/verbs or of its own folder."""
    main = next(root.glob(f"*/*/{name}_main.cpp"), None) or next(root.glob(f"*/{name}_main.cpp"))
    text = read_sources(root, [main.relative_to(root).as_posix()])
    flags = read_options(text)
    helpers, known = re.findall(r"\b(\w+)\(flags\);", text), set()
    while helpers:
        helper = helpers.pop()
        if helper in known:
            continue
        known.add(helper)
        for path in {*root.glob("planner/verbs/*.cpp"), *main.parent.rglob("*.cpp")}:
            source = read_sources(root, [path.relative_to(root).as_posix()])
            if path != main and re.search(rf"^void {helper}\(", source, re.M):
                flags |= read_options(source)
                helpers += re.findall(r"\b(\w+)\(flags\);", source)
    return flags | read_options(read_sources(root, ["planner/verbs/command_line.cpp"]))


def flags_in_help(programs, name):
    done = subprocess.run([programs / f"frazil-{name}", "--help"], capture_output=True, encoding="utf-8", check=True)
    return set(re.findall(r"^  (?:-\w \[ )?--([a-z][a-z-]*)", done.stdout, re.M))


def check_commands(root, programs):
    sections = read_sections(root / "docs" / "commands.md")

    def told_in(title):
        cells = read_tables(sections.get(title, ""), "flag")
        return {flag for cell in cells for flag in re.findall(r"`--([a-z][a-z-]*)", cell)}

    for name in SUBCOMMANDS:
        known = flags_in_help(programs, name) if programs else flags_in_sources(root, name)
        told = told_in(name)
        for flag in sorted(known - told - told_in(COMMON)):
            yield f"docs/commands.md: section `{name}` lacks the flag `--{flag}`"
        for flag in sorted((told | told_in(COMMON)) - known):
            yield f"docs/commands.md: has the flag `--{flag}`, which frazil {name} does not take"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, metavar="ROOT", help="root of the checkout")
    parser.add_argument("--programs", type=Path, help="folder of the built programs")
    given = parser.parse_args(arguments)
    faults = [*check_formats(given.root), *check_commands(given.root, given.programs)]
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
