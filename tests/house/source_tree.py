"""The sources of a tree as the house checks see them: paths, include lines, first comments."""

import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

FLOORS = ("profiles", "traces", "sim", "planner", "analysis", "exec")
ENDINGS = (".h", ".cpp", ".cu", ".cuh")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)


class Complaint(NamedTuple):
    """One broken rule, told as `file:line: sentence`."""

    file: str
    line: int
    sentence: str

    def __str__(self):
        return f"{self.file}:{self.line}: {self.sentence}"


class Include(NamedTuple):
    """One include line: the number of the line, and the path that it names."""

    line: int
    path: str


@dataclass(frozen=True)
class Source:
    """A source file; `path` is its path from `root`. It is read when it is first asked for its text."""

    root: Path
    path: str

    @functools.cached_property
    def text(self):
        return (self.root / self.path).read_text(encoding="utf-8")

    @property
    def folder(self):
        return self.path.rpartition("/")[0]

    @property
    def name(self):
        """The file's name without its ending."""
        return Path(self.path).stem

    @property
    def stem(self):
        """The path without its ending: what a header and its source have in common."""
        return without_ending(self.path)

    @functools.cached_property
    def includes(self):
        """All include lines, from top to bottom."""
        found, line, position = [], 1, 0
        for match in INCLUDE.finditer(self.text):
            line += self.text.count("\n", position, match.start(1))
            position = match.start(1)
            found.append(Include(line, match.group(1)))
        return found

    @property
    def first_comment(self):
        """The first block of `//` lines, if it stands before the includes."""
        include = INCLUDE.search(self.text)
        head = self.text[: include.start()] if include else self.text
        comment = re.search(r"(?:^[ \t]*//.*\n?)+", head, re.MULTILINE)
        return comment.group() if comment else ""


class SourceTree:
    """The sources in the floors and in tests, by their paths from the root."""

    def __init__(self, root):
        self.root = Path(root)
        self.sources = {}
        for folder in (*FLOORS, "tests"):
            for path in self.files_in(folder):
                if path.endswith(ENDINGS):
                    self.sources[path] = Source(self.root, path)

    def files_in(self, folder):
        """The paths of all files in a folder and its folders, sorted."""
        paths = []
        for place, _, names in os.walk(self.root / folder):
            prefix = Path(place).relative_to(self.root).as_posix()
            paths.extend(f"{prefix}/{name}" for name in names)
        return sorted(paths)

    def sources_in(self, *folders):
        """The sources below these folders, sorted by path."""
        return [source for path, source in self.sources.items() if path.startswith(tuple(f + "/" for f in folders))]

    def has_header(self, stem):
        return stem + ".h" in self.sources


def without_ending(path):
    return path.rpartition(".")[0]
