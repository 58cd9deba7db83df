#!/usr/bin/env python3
"""check_rooms.py ROOT [CHECK...]: the tree in ROOT keeps the house rules on rooms, names and documents.

Without CHECK, all of them. Prints each broken rule as one line `file:line: sentence`, and then exits with 1.
"""

import sys

sys.dont_write_bytecode = True

from documents import check_documents  # noqa: E402
from model_rules import check_models  # noqa: E402
from name_rules import check_own_headers, check_test_paths  # noqa: E402
from room_rules import check_programs, check_rooms, check_sizes  # noqa: E402
from source_tree import FLOORS, SourceTree  # noqa: E402
from unit_loops import check_loops  # noqa: E402

CHECKS = {
    "rooms": check_rooms,
    "loops": check_loops,
    "sizes": check_sizes,
    "own-headers": check_own_headers,
    "programs": check_programs,
    "test-paths": check_test_paths,
    "documents": check_documents,
    "models": check_models,
}


def find_complaints(root, names):
    """The complaints of the named checks on the tree in root."""
    tree = SourceTree(root)
    missing = [floor for floor in FLOORS if not tree.sources_in(floor)]
    if missing:
        raise SystemExit(f"check_rooms.py: found no sources in {', '.join(missing)} of {root}")
    return [complaint for name in names for complaint in CHECKS[name](tree)]


def main(arguments):
    names = arguments[1:] or list(CHECKS)
    if not arguments or any(name not in CHECKS for name in names):
        raise SystemExit(f"usage: check_rooms.py ROOT [CHECK...], each CHECK one of {', '.join(CHECKS)}")
    complaints = find_complaints(arguments[0], names)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
