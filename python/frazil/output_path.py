"""The file that is to be written: whether it may be, told before any work is done."""

import re
from pathlib import Path
from typing import Any

from .errors import bad_input

PART = re.compile(r"-\d{5}-of-\d{5}$")  # behind the name of a file that is one of several


def check_output(path: Any, inputs: Any = ()) -> Path:
    """The path of a file to be written. Raises FrazilError where writing it, or its parts, would replace one of the input files."""
    path = Path(path)
    for one in map(Path, inputs):
        if _whole(one.resolve()) == _whole(path.resolve()) or (path.exists() and one.exists() and path.samefile(one)):
            raise bad_input(path, "the name of a file to be written that is read, too", f"another one than that of {one}")
    return path


def _whole(path: Path) -> Path:
    """The path without the number of a part."""
    return path.with_name(PART.sub("", path.stem) + path.suffix)
