"""Loops of units.

A unit is x.h with x.cpp and with each .cpp file that has no header of its own and includes x.h before our other headers: as name_rules.py
has it, that is the unit to which it belongs, however it is called. A test is a unit of its own, and so is a main().

A loop of two is borne only as `x.cpp -> y.h -> x.h`, inside a folder, and only if left_pairs.txt lists it: that list may only shrink.
"""

from source_tree import Complaint, without_ending

LEFT_PAIRS = "tests/house/left_pairs.txt"
MOST_PAIRS = 9  # how many are listed: lower it when one goes


def check_loops(tree):
    """No loop of more than two units, none across folders, no pair that is not listed, and no listed pair that is gone."""
    uses = unit_uses(tree)
    listed = read_left_pairs(tree.root / LEFT_PAIRS)
    if len(listed) > MOST_PAIRS:
        yield Complaint(LEFT_PAIRS, max(listed.values()), f"lists {len(listed)} pairs, expected at most {MOST_PAIRS}")
    loops = find_loops(uses)
    for loop in loops:
        fault = fault_of_loop(loop, uses, listed)
        if fault:
            path, line = first_include(loop, uses)
            yield Complaint(path, line, f"{fault}: {', '.join(loop)}")
    for pair, line in listed.items():
        if pair not in loops:
            yield Complaint(LEFT_PAIRS, line, f"lists a pair that is no loop any more, take it out: {', '.join(pair)}")


def unit_of(tree, source):
    """The unit to which a source belongs, named by its path without an ending."""
    is_part = source.path.endswith(".cpp") and not source.path.startswith("tests/") and not source.name.endswith("_main")
    if tree.has_header(source.stem) or not is_part:
        return source.stem
    first = next((include.path for include in source.includes if include.path in tree.sources), "")
    return without_ending(first) or source.stem


def unit_uses(tree):
    """For each unit the others that it includes, each with the files and lines that do: uses[unit][other] = [(path, line)]."""
    uses = {}
    for source in tree.sources.values():
        unit = unit_of(tree, source)
        others = uses.setdefault(unit, {})
        for line, path in source.includes:
            other = without_ending(path)
            if path in tree.sources and other != unit:
                others.setdefault(other, []).append((source.path, line))
    return uses


def find_loops(uses):
    """The loops, each as a sorted tuple of units: units that reach each other."""
    left = without_ends(uses)
    reached = {unit: reachable(unit, left) for unit in left}
    return sorted({tuple(sorted(v for v in reached[u] if u in reached[v])) for u in left if u in reached[u]})


def without_ends(uses):
    """The units that lie on or between loops: those that use nothing go, then those that only used these, and so on."""
    left = {unit: set(others) for unit, others in uses.items()}
    while ends := {unit for unit, others in left.items() if not others}:
        left = {unit: others - ends for unit, others in left.items() if unit not in ends}
    return left


def reachable(unit, uses):
    """The units that are found along the uses of `unit`; it is among them if it lies on a loop."""
    found, waiting = set(), [unit]
    while waiting:
        new = uses[waiting.pop()] - found
        found |= new
        waiting.extend(new)
    return found


def fault_of_loop(loop, uses, listed):
    """What is wrong with a loop; nothing if it is a listed pair."""
    if len({unit.rpartition("/")[0] for unit in loop}) > 1:
        return "is part of a loop across folders"
    if len(loop) > 2:
        return f"is part of a loop of {len(loop)} units"
    if header_uses(*loop, uses) == header_uses(*reversed(loop), uses):
        return "is part of a pair that is not of the form x.cpp -> y.h -> x.h"
    return "" if loop in listed else f"is part of a pair that {LEFT_PAIRS} does not list"


def header_uses(unit, other, uses):
    """Whether the header of `unit` includes that of `other`."""
    return any(path == unit + ".h" for path, _ in uses[unit][other])


def first_include(loop, uses):
    """The first include by which a unit of the loop leads to another."""
    return next(uses[unit][other][0] for unit in loop for other in loop if other in uses[unit])


def read_left_pairs(path):
    """The listed pairs and the lines on which they stand; without the file, none."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {tuple(sorted(line.split())): number for number, line in enumerate(lines, 1) if line and not line.startswith("#")}
