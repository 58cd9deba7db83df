#!/usr/bin/env python3
"""check_planted_rooms.py: the checks of check_rooms.py pass a small tree that keeps the rules, and find each violation planted in it.

run_commands.py passes a document whose commands do what it shows, and finds each that does not. check_listed.sh, check_formats.py,
check_flags.py and check_start.sh each find what is planted for them.
"""

import contextlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True

from check_rooms import CHECKS, find_complaints  # noqa: E402
from run_commands import run_document  # noqa: E402

HOUSE = Path(__file__).resolve().parent
LISTED = "tests/house/left_pairs.txt"

# A small tree that keeps every rule, in places only just.
TREE = {
    "profiles/units.h": "",
    "profiles/units.cpp": '#include "profiles/units.h"\n',
    "traces/action.h": '#include "profiles/units.h"\n',
    "traces/action_text.cpp": '// Words.\n#include "traces/action.h"\n',
    "sim/engine.h": "",
    "planner/plan/plan.h": "",
    "planner/plan/plan.cpp": '#include "planner/plan/plan.h"\n#include "planner/plan/slices.h"\n',
    "planner/plan/slices.h": '#include "planner/plan/plan.h"\n',
    "planner/bounds/bound.h": "",
    "planner/search/search.h": '#include "planner/plan/plan.h"\n#include "planner/search/part.h"\n',
    "planner/search/part.h": '#include <vector>\n#include "planner/bounds/bound.h"\n',
    "planner/search/other.cpp": '// A part of planner/search/search.h.\n#include "planner/search/search.h"\n',
    "planner/answers/print_plan.h": '#include "planner/search/search.h"\n',
    "planner/verbs/plan_main.cpp": '#include <cstdio>\n#include "planner/answers/print_plan.h"\n',
    "analysis/table.h": "",
    "exec/tensors/tensors.h": '#include "planner/answers/print_plan.h"\n',
    "exec/models/model.h": "ModelSpec with_precision(ModelSpec model);\n",
    "exec/models/mlp.h": '#include "exec/models/model.h"\nModelSpec make_mlp(const MlpConfig& config);\n',
    "exec/models/choice/model_choice.h": '#include "exec/models/mlp.h"\nModelSpec make_model(const ModelChoice& choice);\n',
    "exec/run/run.h": '#include "exec/models/choice/model_choice.h"\n// Not make_mlp().\nmake_model(choice);\n',
    "exec/devices/cuda/stream.h": '#include "exec/tensors/tensors.h"\n',
    "exec/runs/digits.json": "{}\n",
    "tests/planner/search/search_test.cpp": '#include <vector>\n#include "planner/search/search.h"\n',
    "tests/planner/search/search_small_cases_test.cpp": "",
    "tests/exec/properties/threads/same_bits_test.cpp": "",
    "tests/house/any_test.cpp": "",
    "tests/support/golden.h": "",
    LISTED: "# Pairs.\nplanner/plan/plan planner/plan/slices\n",
    "build/bin/tell": "#!/bin/sh\necho told\n",
    "README.md": "# Title\n\n- item\n\n      in the item\n\nText\n    goes on.\n\n```sh shown\n./demo.sh\n```\n",
    "docs/page.md": "```sh run\necho 1\n```\n\n```text output\n1\n```\n\n~~~text\n```\n\n    deep\n~~~\n",
}

# (check, what is written to the ends of files, where that is found, a part of the sentence)
VIOLATIONS = [
    ("rooms", {"planner/plan/plan.h": '#include "planner/search/search.h"\n'}, "planner/plan/plan.h:1", "search stands above plan"),
    ("rooms", {"planner/plan/plan.cpp": " #  include <planner/verbs/flags.h>\n"}, "planner/plan/plan.cpp:3", "verbs stands above plan"),
    ("rooms", {"exec/devices/cuda/stream.h": '\n#include "exec/cache/store.h"\n'}, "exec/devices/cuda/stream.h:3", "above devices"),
    ("rooms", {"exec/tensors/tensors.h": '#include "exec/hall.h"\n'}, "exec/tensors/tensors.h:2", "lies in no room of exec"),
    ("rooms", {"planner/hall.h": ""}, "planner/hall.h:1", "lies in no room of planner"),
    ("rooms", {"planner/cellar/wine.h": ""}, "planner/cellar/wine.h:1", "lies in no room of planner"),
    ("rooms", {"exec/launch/launch.h": ""}, "exec/launch/launch.h:1", "lies in no room of exec"),
    ("rooms", {"exec/runs/notes.txt": ""}, "exec/runs/notes.txt:1", "holds JSON files only"),
    (
        "loops",
        {
            "sim/a.h": '#include "sim/b.h"\n',
            "sim/b.h": '#include "sim/c.h"\n',
            "sim/c.h": "",
            "sim/c_part.cpp": '#include "sim/c.h"\n#include "sim/a.h"\n',
        },
        "sim/a.h:1",
        "a loop of 3 units: sim/a, sim/b, sim/c",
    ),
    (
        "loops",
        {"sim/a.h": "", "sim/b.h": '#include "sim/a.h"\n', "sim/other.cpp": '// Part of sim/a.h.\n#include "sim/a.h"\n#include "sim/b.h"\n'},
        "sim/other.cpp:3",
        "does not list: sim/a, sim/b",
    ),
    ("loops", {"planner/bounds/bound.cpp": '#include "planner/search/search.h"\n'}, "planner/bounds/bound.cpp:1", "across folders"),
    ("loops", {"planner/search/part.h": '#include "planner/search/search.h"\n'}, "planner/search/part.h:3", "not of the form"),
    (
        "loops",
        {"sim/a.h": "", "sim/b.h": "", "sim/a.cpp": '#include "sim/b.h"\n', "sim/b.cpp": '#include "sim/a.h"\n'},
        "sim/a.cpp:1",
        "not of the form",
    ),
    ("loops", {"sim/a.h": '#include "sim/engine.h"\n', "sim/engine.cpp": '#include "sim/a.h"\n'}, "sim/a.h:1", "does not list"),
    ("loops", {LISTED: "planner/plan/plan sim/engine\n"}, f"{LISTED}:3", "no loop any more"),
    ("sizes", {f"planner/search/s{i}.h": "" for i in range(38)}, "planner/search:1", "holds 41 sources, expected at most 40"),
    ("sizes", {f"exec/devices/cuda/s{i}.cpp": "" for i in range(40)}, "exec/devices/cuda:1", "holds 41 sources, expected at most 40"),
    ("sizes", {f"sim/s{i}.cpp": "" for i in range(60)}, "sim:1", "holds 61 sources, expected at most 60"),
    ("sizes", {f"tests/support/s{i}.cpp": "" for i in range(60)}, "tests/support:1", "holds 61 sources, expected at most 60"),
    ("own-headers", {"sim/engine.cpp": '#include <vector>\n#include "sim/engine.h"\n'}, "sim/engine.cpp:1", "expected sim/engine.h"),
    (
        "own-headers",
        {"sim/engine.cpp": '// As sim/clock.h.\n#include "sim/clock.h"\n', "sim/clock.h": ""},
        "sim/engine.cpp:2",
        "expected sim/engine.h",
    ),
    ("own-headers", {"sim/engine_run.cpp": '#include <vector>\n'}, "sim/engine_run.cpp:1", "expected sim/engine.h"),
    ("own-headers", {"sim/engine_run.cpp": ""}, "sim/engine_run.cpp:1", "includes nothing"),
    ("own-headers", {"sim/queue.cpp": '#include "sim/engine.h"\n// Part of sim/engine.h.\n'}, "sim/queue.cpp:1", "its first comment names"),
    ("own-headers", {"sim/queue.cpp": '// Part of sim/clock.h.\n#include "sim/clock.h"\n'}, "sim/queue.cpp:2", "its first comment names"),
    ("own-headers", {"tests/support/golden.cpp": "#include <vector>\n"}, "tests/support/golden.cpp:1", "expected tests/support/golden.h"),
    ("programs", {"planner/search/search_main.cpp": ""}, "planner/search/search_main.cpp:1", "stand in verbs"),
    ("programs", {"exec/cache/print_cache.h": ""}, "exec/cache/print_cache.h:1", "stand in verbs"),
    ("test-paths", {"tests/planner/bounds/search_test.cpp": ""}, "tests/planner/bounds/search_test.cpp:1", "names no source"),
    ("test-paths", {"tests/planner/search/searched_test.cpp": ""}, "tests/planner/search/searched_test.cpp:1", "names no source"),
    ("test-paths", {"tests/exec/tensors/no_tensors_test.cpp": ""}, "tests/exec/tensors/no_tensors_test.cpp:1", "names no source"),
    ("test-paths", {"tests/planner/interop/any_test.cpp": ""}, "tests/planner/interop/any_test.cpp:1", "names no source"),
    ("models", {"exec/run/run.h": "f(make_mlp({}));\n"}, "exec/run/run.h:4", "names make_mlp"),
    ("models", {"exec/run/run.h": "MlpConfig model;\n"}, "exec/run/run.h:4", "names MlpConfig"),
    ("models", {"exec/run/run.h": '#include "exec/models/mlp.h"\n'}, "exec/run/run.h:4", "includes exec/models/mlp.h"),
    (
        "models",
        {"exec/models/other_mlp.h": '#include "exec/models/mlp.h"\n', "exec/run/run.h": '#include "exec/models/other_mlp.h"\n'},
        "exec/run/run.h:4",
        "includes exec/models/other_mlp.h",
    ),
    ("documents", {"README.md": "\n" * 139}, "README.md:151", "at most 150"),
    ("documents", {"README.md": "```\nls\n```\n"}, "README.md:13", "without a mark"),
    ("documents", {"README.md": "1. item\n\nText\n\n    ls\n    cat\n"}, "README.md:17", "without a fence"),
    ("documents", {"docs/page.md": "\n\tls\n"}, "docs/page.md:15", "without a fence"),
    ("documents", {"docs/page.md": "```sh\nls\n```\n"}, "docs/page.md:14", "found mark `sh`"),
    ("documents", {"docs/page.md": "- item\n  ```bash\n  ls\n  ```\n"}, "docs/page.md:15", "found mark `bash`"),
    ("documents", {"docs/page.md": "```sh runs\nls\n```\n"}, "docs/page.md:14", "found mark `sh runs`"),
    ("documents", {"docs/page.md": "```console\n$ ls\n```\n"}, "docs/page.md:14", "found mark `console`"),
    ("documents", {"docs/page.md": "```sh run\nls\n```\n```text output exact\n```\n"}, "docs/page.md:17", "found mark `text output exact`"),
    ("documents", {"docs/page.md": "```sh shown\nls\n```\n```text output\n```\n"}, "docs/page.md:17", "output of no commands"),
    ("documents", {"docs/page.md": "~~~text\n```\n"}, "docs/page.md:14", "not closed"),
    (
        "documents",
        {
            "docs/install.md": "```cpp\nint y;\n```\n```cmake\nx\n```\n",
            "tests/install/consumer/CMakeLists.txt": "y\n",
            "tests/install/consumer/consumer_main.cpp": "int y;\n",
        },
        "docs/install.md:4",
        "differs from tests/install/consumer/CMakeLists.txt",
    ),
    ("documents", {"CONTRIBUTING.md": "```sh\nls\n```\n"}, "CONTRIBUTING.md:1", "found mark `sh`"),
]

# (document, line of the complaint or 0 for none, a part of the sentence)
DOCUMENTS = [
    ("```sh run\necho a > f\n```\n```sh run\ncat f exec/runs/digits.json\n```\n```text output\na\n{}\n```\n", 0, ""),
    ("```sh run\nbuild/bin/tell\n```\n```text output\ntold\n```\n", 0, ""),
    ("```sh run\nseq 9\n```\n```text output\n1\n...\n4\n5\n...\n```\n", 0, ""),
    ("```sh run\nseq 9\n```\n```text output\n...\n9\n...\n```\n", 0, ""),
    ("```sh run\necho 12.5 ms,   3 x\n```\n```text output measured\n1 ms, 14.25 x\n```\n", 0, ""),
    ("```sh run\necho 1 >&2\n```\n```text output\n```\n", 0, ""),
    ("```sh run\ntrue\n```\n```sh shown\nfalse\n```\n```text\nfalse\n```\n", 0, ""),
    ("```sh shown\nfalse\n```\n", 1, "has no block marked `sh run`"),
    ("Text.\n```sh run\nfalse\ntrue\n```\n", 2, "exit code 1"),
    ("```sh run\nfalse | true\n```\n", 1, "exit code 1"),
    ("```sh run\n(exit 4)\n```\n```sh run\necho 2\n```\n```text output\n1\n```\n", 1, "exit code 4"),
    ("```sh run\necho $nothing\n```\n", 1, "exit code"),
    ("```sh run\nseq 3\n```\n```text output\n1\n3\n```\n", 6, "`3`"),
    ("```sh run\nseq 3\n```\n```text output\n1\n2\n```\n", 7, "more was printed"),
    ("```sh run\nseq 3\n```\n```text output\n1\n2\n3\n4\n```\n", 8, "`4`"),
    ("```sh run\nseq 9\n```\n```text output\n1\n...\n5\n7\n...\n```\n", 8, "`7`"),
    ("```sh run\nseq 9\n```\n```text output\n...\n8\n```\n", 7, "more was printed"),
    ("```sh run\necho a.c\n```\n```text output\nabc\n```\n", 5, "`abc`"),
    ("```sh run\necho 12.5 ms\n```\n```text output\n12.6 ms\n```\n", 5, "`12.6 ms`"),
    ("```sh run\necho 12.5 ms\n```\n```text output measured\n12.5 us\n```\n", 5, "`12.5 us`"),
]


def write(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


@contextlib.contextmanager
def planted(root, additions):
    """Writes additions to the ends of files of the tree, and takes them away again."""
    for path, text in additions.items():
        write(root, path, TREE.get(path, "") + text)
    yield
    for path in additions:
        if path in TREE:
            write(root, path, TREE[path])
        else:
            (root / path).unlink()


def faults_of_violation(root, check, additions, place, part):
    """What is wrong if the violation is not the one complaint of its check."""
    with planted(root, additions):
        found = [str(complaint) for complaint in find_complaints(root, [check])]
    if len(found) != 1 or not found[0].startswith(place + ": ") or part not in found[0]:
        yield f"{check}: planted {part!r} at {place}, found {found}"


def faults_of_document(root, text, line, part):
    """What is wrong if a document's commands are not complained of as they should."""
    with planted(root, {"docs/planted.md": text}):
        answers = run_document(root / "docs/planted.md", "docs/planted.md", root / "build/bin", root)
        found = [str(complaint) for complaint, _ in answers]
    is_right = len(found) == 1 and found[0].startswith(f"docs/planted.md:{line}: ") and part in found[0] if line else not found
    if not is_right:
        yield f"a document: expected {part!r} at line {line}, found {found}; the document:\n{text}"


def faults_of_programs(root):
    """What is wrong with how the two programs end and print."""
    commands = ["run_commands.py", "--programs", root, "--source", root, root / "docs/page.md"]
    yield from faults_of_program(0, "", "check_rooms.py", root)
    with planted(root, {"planner/hall.h": "", "docs/page.md": "```sh shown\nfalse\n```\n"}):
        yield from faults_of_program(1, "planner/hall.h:1: lies in no room of planner", "check_rooms.py", root)
        yield from faults_of_program(0, "", *commands)
    with planted(root, {"docs/page.md": "```sh run\nfalse\n```\n"}):
        yield from faults_of_program(1, "docs/page.md:14: these commands failed", *commands)


def faults_of_listed(root):
    """What is wrong with check_listed.sh: a test is listed by its path, neither by its name nor by a longer path."""
    listed = {"tests/CMakeLists.txt": "add_suites(all_tests planner/search/search_test.cpp)\n"}
    with tempfile.TemporaryDirectory(dir=root) as folder:
        tree = Path(folder)
        for path, text in {**listed, "tests/planner/search/search_test.cpp": ""}.items():
            write(tree, path, text)
        yield from faults_of_program(0, "", "check_listed.sh", tree)
        for other in ("tests/planner/bounds/search_test.cpp", "tests/search_test.cpp", "tests/planner/search/h_test.cpp"):
            write(tree, other, "")
            yield from faults_of_program(1, f"{other}: in no CMakeLists.txt\n", "check_listed.sh", tree)
            (tree / other).unlink()


def faults_of_start(root):
    """What is wrong with check_start.sh, if it passes a folder where a script lies in the place of a program."""
    with planted(root, {"build/bin/frazil": TREE["build/bin/tell"]}):
        yield from faults_of_program(1, "", "check_start.sh", root / "build/bin", said="frazil is no program that starts here")


def faults_of_formats():
    """What is wrong with check_formats.py: keys and flags are read from sources, and a missing or invented key is found."""
    yield from faults_of_program(0, "", "check_formats.py", HOUSE.parent.parent)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for part in ("docs", "profiles", "traces", "planner", "analysis", "exec"):
            shutil.copytree(HOUSE.parent.parent / part, tree / part)
        formats, commands = (tree / "docs" / name for name in ("formats.md", "commands.md"))
        for page, heading, sentence in (
            (formats, "## Plan\n", "section `Plan` has the key `planted`, which no reader takes"),
            (commands, "## plan\n", "has the flag `--planted`, which frazil plan does not take"),
        ):
            text = page.read_text(encoding="utf-8")
            name, cell = ("key", "`planted`") if page == formats else ("flag", "`--planted`")
            page.write_text(text.replace(heading, f"{heading}\n| {name} | meaning |\n|---|---|\n| {cell} | - |\n\n"), encoding="utf-8")
            yield from faults_of_program(1, f"docs/{page.name}: {sentence}\n", "check_formats.py", tree)
            page.write_text(text, encoding="utf-8")
        text = formats.read_text(encoding="utf-8")
        rows = text.splitlines(keepends=True)
        formats.write_text("".join(row for row in rows if not row.startswith("| `tensor_hashes`")), encoding="utf-8")
        yield from faults_of_program(1, "docs/formats.md: section `Checkpoint` lacks the key `tensor_hashes`\n", "check_formats.py", tree)
        formats.write_text(text, encoding="utf-8")


def faults_of_flags():
    """What is wrong with check_flags.py: a flag that is described alone, counted or refused beside another is not read."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for part in ("profiles", "traces", "sim", "planner"):
            shutil.copytree(HOUSE.parent.parent / part, tree / part)
        yield from faults_of_program(0, "", "check_flags.py", tree, "simulate")
        source = tree / "planner/verbs/simulate_flags.cpp"
        text = source.read_text(encoding="utf-8")
        described = text.replace('("plan", ', '("planted", text_value("N"), "a flag") ("plan", ', 1)
        told = "planner/verbs/simulate_main.cpp: frazil simulate takes the flag `--planted` and does not read it\n"
        looked = 'void look(const Flags& values) {\n  if (values.count("planted") > 0) refuse_together(values, "--plan", {"planted"});\n}\n'
        read = 'int look(const Flags& values) {\n  return required_integer(values, "planted", 0, 1);\n}\n'
        for code, more in ((1, ""), (1, looked), (0, read)):
            source.write_text(described + more, encoding="utf-8")
            yield from faults_of_program(code, told if code else "", "check_flags.py", tree, "simulate")


def faults_of_program(code, text, program, *arguments, said=""):
    """What is wrong if a check does not end with this code, print this first and say that among its errors."""
    shell = "bash" if program.endswith(".sh") else sys.executable
    done = subprocess.run([shell, HOUSE / program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != code or not done.stdout.startswith(text) or (not text and done.stdout) or said not in done.stderr:
        yield f"{program}: expected exit code {code} and {text!r}, found {done.returncode} and {done.stdout!r} {done.stderr!r}"


def find_faults(root):
    """All that is wrong, with the tree laid into the folder `root`."""
    for path, text in TREE.items():
        write(root, path, text)
    (root / "build/bin/tell").chmod(0o755)
    yield from faults_of_programs(root)
    yield from faults_of_listed(root)
    yield from faults_of_start(root)
    yield from faults_of_formats()
    yield from faults_of_flags()
    for violation in VIOLATIONS:
        yield from faults_of_violation(root, *violation)
    for document in DOCUMENTS:
        yield from faults_of_document(root, *document)
    for check in sorted(CHECKS.keys() - {check for check, *_ in VIOLATIONS}):
        yield f"{check}: nothing is planted"


def main():
    with tempfile.TemporaryDirectory() as folder:
        faults = list(find_faults(Path(folder)))
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
