"""What the name of a source promises: the header that it includes first, and for a test the source that it tests."""

import re

from source_tree import FLOORS, Complaint

HEADER_PATH = re.compile(r"\b[\w/]+/\w+\.h\b")
# These tests are about programs or about what crosses rooms, not about one source.
FREE_FOLDERS = ("properties", "verbs")
FREE_ROOTS = ("tests/house", "tests/interop", "tests/bench", "tests/fuzz", "tests/gpu", "tests/support")


def check_own_headers(tree):
    """A .cpp file first includes the header of the unit to which it belongs."""
    for source in tree.sources.values():
        if not source.path.endswith(".cpp") or source.name.endswith("_main"):
            continue
        expected = own_headers(tree, source)
        is_free = source.path.startswith("tests/") and not expected
        first = source.includes[0] if source.includes else None
        if not is_free and (first is None or first.path not in expected):
            yield Complaint(source.path, first.line if first else 1, told_headers(first, expected))


def own_headers(tree, source):
    """The headers of which a .cpp file may include one first: its own, else those that its name begins with, or that its first comment names first."""
    if tree.has_header(source.stem):
        return [source.stem + ".h"]
    if source.path.startswith("tests/"):
        return []
    named = [path for path in HEADER_PATH.findall(source.first_comment) if path in tree.sources]
    return [stem + ".h" for stem in begun_stems(source.stem) if tree.has_header(stem)] + named[:1]


def begun_stems(stem):
    """The paths of which the stem may be a part: a/b_c_d is one of a/b_c and of a/b."""
    folder, _, name = stem.rpartition("/")
    words = name.split("_")
    return [f"{folder}/{'_'.join(words[:count])}" for count in range(len(words) - 1, 0, -1)]


def told_headers(first, expected):
    found = f"first includes {first.path}" if first else "includes nothing"
    if expected:
        return f"{found}, expected {' or '.join(expected)}"
    return f"{found}, expected the header of its unit; it has none of its own, so its first comment names that by its path"


def check_test_paths(tree):
    """tests/A/B/x_test.cpp tests A/B/x, or x is the name of a unit there with more words behind it."""
    stems = {source.stem for source in tree.sources_in(*FLOORS)}
    for source in tree.sources_in("tests"):
        if not source.path.endswith("_test.cpp") or is_free_test(source.path):
            continue
        tested = source.path[len("tests/") : -len("_test.cpp")]
        if not any(stem in stems for stem in [tested, *begun_stems(tested)]):
            yield Complaint(source.path, 1, f"names no source: found neither {tested}.h nor .cpp, nor a unit with which that begins")


def is_free_test(path):
    return path.startswith(tuple(root + "/" for root in FREE_ROOTS)) or any(f"/{name}/" in path for name in FREE_FOLDERS)
