"""What may stand in a room or folder, and what it may include."""

import collections

from source_tree import Complaint

# Bottom to top: a file includes nothing of a room that stands to the right of its own.
ROOMS = {
    "planner": (
        "plan partition freezing orders actions lowering schedules prediction order_search interop bounds search what_if "
        "transitions trajectory named drift answers verbs reproduce"
    ).split(),
    "exec": (
        "tensors disk models state devices cache links communication measuring program reduction control run data config checkpoint "
        "profile train verbs"
    ).split(),
}
ROOMS_OF_PROGRAMS = ("verbs", "answers", "reproduce")
FOLDER_OF_RUNS = "exec/runs"
MOST_FILES_OF_A_ROOM = 40
MOST_FILES_ELSEWHERE = 60


def room_of(path):
    """The second folder of a path (`search` of planner/search/propose.h); empty for a file that stands in a floor itself."""
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else ""


def check_rooms(tree):
    """Every source of planner and exec lies in a room, and includes nothing of a room above its own."""
    for floor, rooms in ROOMS.items():
        for source in tree.sources_in(floor):
            if room_of(source.path) in rooms:
                yield from check_includes(source, floor, rooms)
            else:
                yield Complaint(source.path, 1, f"lies in no room of {floor}, expected one of {', '.join(rooms)}")
    for path in tree.files_in(FOLDER_OF_RUNS):
        if not path.endswith(".json"):
            yield Complaint(path, 1, f"stands in {FOLDER_OF_RUNS}, which holds JSON files only")


def check_includes(source, floor, rooms):
    """The includes of one source that lies in a room of the floor."""
    own = room_of(source.path)
    for include in source.includes:
        if not include.path.startswith(floor + "/"):
            continue
        room = room_of(include.path)
        if room not in rooms:
            yield Complaint(source.path, include.line, f"includes {include.path}, which lies in no room of {floor}")
        elif rooms.index(room) > rooms.index(own):
            yield Complaint(source.path, include.line, f"includes {include.path}, but {room} stands above {own}")


def check_sizes(tree):
    """No folder holds more sources than one looks through with pleasure."""
    counts = collections.Counter(path.rpartition("/")[0] for path in tree.sources)
    for folder, count in sorted(counts.items()):
        most = MOST_FILES_OF_A_ROOM if folder.split("/")[0] in ROOMS else MOST_FILES_ELSEWHERE
        if count > most:
            yield Complaint(folder, 1, f"holds {count} sources, expected at most {most}; some of them make a folder of their own")


def check_programs(tree):
    """In planner and exec, programs and what prints for people stand in the rooms for that."""
    for source in tree.sources_in(*ROOMS):
        is_program = source.name.endswith("_main") or source.name.startswith("print_")
        if is_program and room_of(source.path) not in ROOMS_OF_PROGRAMS:
            yield Complaint(source.path, 1, f"is named as a program or printer, which stand in {', '.join(ROOMS_OF_PROGRAMS)}")
