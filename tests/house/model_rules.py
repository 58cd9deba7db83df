"""Which model a run trains is a choice: outside exec/models, no source of exec names one of the models."""

import re

from source_tree import Complaint

ROOM = "exec/models/"
CHOICE = "exec/models/choice/"  # names them all, and is what others go by
MAKER = re.compile(r"^ModelSpec\s+(make_\w+)\(const (\w+)&", re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*")


def check_models(tree):
    """Sources of exec outside exec/models include no header of a particular model, and name neither its settings nor its maker."""
    headers, words = find_models(tree)
    if not words:
        return
    pattern = re.compile(rf"\b(?:{'|'.join(sorted(words))})\b")
    for source in tree.sources_in("exec"):
        if source.path.startswith(ROOM):
            continue
        for include in source.includes:
            if include.path in headers:
                yield Complaint(source.path, include.line, f"includes {include.path}, a particular model; go by {CHOICE}model_choice.h")
        for number, line in enumerate(source.text.splitlines(), 1):
            found = pattern.search(COMMENT.sub("", line))
            if found and not line.lstrip().startswith("#"):
                yield Complaint(source.path, number, f"names {found.group()}, a particular model; go by {CHOICE}model_choice.h")


def find_models(tree):
    """The headers of particular models and of what includes them, and the names of their makers and settings."""
    own = [source for source in tree.sources_in("exec") if source.path.startswith(ROOM) and source.path.endswith(".h")]
    makers = {source.path: MAKER.findall(source.text) for source in own if not source.path.startswith(CHOICE)}
    headers = {path for path, found in makers.items() if found}
    words = {word for found in makers.values() for pair in found for word in pair}
    for source in own:
        if not source.path.startswith(CHOICE) and any(include.path in headers for include in source.includes):
            headers.add(source.path)
    return headers, words
