"""The file that is to be written: whether it may be, told before any work is done."""

import os
import re
from pathlib import Path
from typing import Any

from .errors import bad_input

PART = re.compile(r"-\d{5}-of-\d{5}$")  # behind the name of a file that is one of several


def check_output(path: Any, inputs: Any = ()) -> Path:
    """The path of a file to be written. Raises FrazilError where no file can be, or would replace, as do its parts, one of the input files."""
    path = Path(path)
    _expect_place(path)
    for one in map(Path, inputs):
        if _whole(one.resolve()) == _whole(path.resolve()) or (path.exists() and one.exists() and path.samefile(one)):
            raise bad_input(path, "the name of a file to be written that is read, too", f"another one than that of {one}")
    return path


def _expect_place(path: Path) -> None:
    try:
        if path.is_dir():
            raise bad_input(path, "a folder", "the name of a file to be written")
        if not path.parent.is_dir():
            raise bad_input(path, f"no folder {path.parent}", "one that is there")
    except OSError as error:
        raise bad_input(path, (error.strerror or str(error)).lower(), "the name of a file to be written") from None
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise bad_input(path, f"no right to write into {path.parent}", "a folder that may be written into")


def _whole(path: Path) -> Path:
    """The path without the number of a part."""
    return path.with_name(PART.sub("", path.stem) + path.suffix)
