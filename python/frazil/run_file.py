"""Run configurations, read and written as JSON; what is in them is the programs' to judge."""

import json
import os
from pathlib import Path
from typing import Any

from .errors import bad_input


def read_run(path: Any) -> dict:
    """Raises FrazilError where the file is no run configuration."""
    path = Path(path)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise bad_input(path, (error.strerror or str(error)).lower(), "a run configuration") from None
    except ValueError as error:
        raise bad_input(path, f"no JSON ({error})", "a run configuration") from None
    if not isinstance(found, dict) or found.get("format") != "frazil.run":
        raise bad_input(path, "another file", 'a run configuration ("format": "frazil.run")')
    return found


def write_json(path: Any, content: dict) -> None:
    """Writes under another name and renames, so that the file is whole or not there."""
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
