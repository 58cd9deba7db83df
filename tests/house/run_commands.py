#!/usr/bin/env python3
"""run_commands.py --programs BUILD/bin --source ROOT FILE...: the commands of documents do what the documents show.

Runs the blocks marked `sh run` of each document in order, with `bash -euo pipefail`, in one fresh folder per document, where build/bin
leads to the programs, and the folders of LINKED to those of the checkout. A document without such a block is a fault: a test
of it would test nothing. Where the next block is marked
`text output`, it is compared with what the commands printed on stdout: a line `...` stands for any number of lines, every other line for
itself. With `text output measured` numbers and the widths of gaps are not compared. documents.py tells all marks.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True

from documents import COMMANDS_THAT_RUN, OUTPUT, read_document  # noqa: E402
from source_tree import Complaint  # noqa: E402

LINKED = ("exec", "profiles", "traces", "tests", "docs", "python")
MOST_LINES_TOLD = 40


def lay_folder(folder, programs, source):
    """Links the programs and the folders of the checkout into a fresh folder."""
    (folder / "build").mkdir()
    (folder / "build" / "bin").symlink_to(programs)
    for place in (source / name for name in LINKED):
        if place.exists():
            (folder / place.name).symlink_to(place)


def run_document(path, name, programs, source):
    """Runs the blocks of one document up to the first failure; yields a complaint and what had been printed by then."""
    with tempfile.TemporaryDirectory(prefix="commands-") as scratch:
        lay_folder(Path(scratch), programs, source)
        pairs = [pair for pair in read_document(path).pairs() if pair[0].info == COMMANDS_THAT_RUN]
        if not pairs:
            yield Complaint(name, 1, f"has no block marked `{COMMANDS_THAT_RUN}`, so nothing of it was run"), []
        for block, following in pairs:
            done = run_block(block, scratch)
            if done.returncode != 0:
                told = (done.stdout + done.stderr).splitlines()[-MOST_LINES_TOLD:]
                yield Complaint(name, block.line, f"these commands failed with exit code {done.returncode}"), told
                return
            if following and following.info in OUTPUT:
                yield from compare_output(following, done.stdout.splitlines(), name)


def run_block(block, scratch):
    """Runs one block of commands in the folder `scratch`."""
    command = ["bash", "-euo", "pipefail", "-c", "\n".join(block.lines)]
    return subprocess.run(
        command, cwd=scratch, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", check=False
    )


def compare_output(block, printed, name):
    """Yields a complaint if what a block shows is not what was printed."""
    expected, found = block.lines, printed
    if block.info.endswith(" measured"):
        expected, found = [without_numbers(line) for line in expected], [without_numbers(line) for line in found]
    agreed = count_agreed(expected, found)
    if agreed is not None:
        is_end = agreed == len(expected)
        sentence = "more was printed than stands above this" if is_end else f"this line was not printed here: `{block.lines[agreed]}`"
        yield Complaint(name, block.line + 1 + agreed, sentence), printed[-MOST_LINES_TOLD:]


def without_numbers(line):
    """The line with `#` for each number and one space for each gap."""
    return re.sub(r" +", " ", re.sub(r"[\d.]*\d[\d.]*", "#", line)).strip()


def count_agreed(expected, found):
    """How many expected lines agree with what was found before the first that does not; None if everything agrees."""
    text = "".join(line + "\n" for line in found)
    if re.fullmatch(pattern_of(expected), text):
        return None
    return next(count for count in range(len(expected), -1, -1) if re.match(pattern_of(expected[:count]), text))


def pattern_of(lines):
    """An expression for these lines, of which `...` stands for any number of lines."""
    return "".join(r"(?:[^\n]*\n)*?" if line.strip() == "..." else re.escape(line) + r"\n" for line in lines)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, required=True, help="folder of the built programs")
    parser.add_argument("--source", type=Path, required=True, help="root of the checkout")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    given = parser.parse_args(arguments)
    programs, source, failed = given.programs.resolve(strict=True), given.source.resolve(strict=True), False
    for path in given.files:
        absolute = path.resolve(strict=True)
        name = absolute.relative_to(source).as_posix() if absolute.is_relative_to(source) else str(path)
        for complaint, printed in run_document(absolute, name, programs, source):
            print(complaint, *(f"  | {line}" for line in printed), sep="\n")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
