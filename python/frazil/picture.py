"""The picture of a step, drawn by `frazil export --to svg` when it is first looked at.

A picture keeps what its files held when the answer was made, so that it shows the step of the answer whatever becomes of them.
"""

import os
import tempfile
from pathlib import Path
from typing import Any, Optional

from .errors import FrazilError
from .flags import make_words
from .programs import list_flags, run_program

FILES = ("plan", "profile", "cluster")
# Keywords that leave the time line of the step as it is, so that a picture need not know of them.
NO_MATTER = frozenset("activation stage_input state memory_limit explain messages jitter draws seed out chrome max_memory".split())


class Picture:
    """What `export` is to draw: keyword arguments, of which files are given as their bytes or as a dict."""

    def __init__(self, given: dict):
        self._given = {key: _keep(value) if key in FILES else value for key, value in given.items()}
        self._drawn: Optional[tuple] = None

    def draw(self) -> tuple:
        """The SVG, and notes: an empty one with a sentence that says why, where there is no picture."""
        if self._drawn is None:
            try:
                self._drawn = self._draw(), []
            except FrazilError as error:
                self._drawn = "", [f"no picture: {error.sentence}"]
        return self._drawn

    def _draw(self) -> str:
        known = list_flags("export")
        given = {key: value for key, value in self._given.items() if value not in (None, False) and key not in NO_MATTER}
        foreign = [key for key in given if key.replace("_", "-") not in known]
        if "plan" in given:
            foreign += [key for key in given if key not in FILES and key not in foreign]
        if foreign:
            raise FrazilError(f"`frazil export` draws no step with {', '.join(sorted(foreign))}")
        with tempfile.TemporaryDirectory(prefix="frazil-") as name:
            folder = Path(name)
            laid = {key: _lay(folder / f"{key}.json", value) if key in FILES else value for key, value in given.items()}
            picture = folder / "step.svg"
            run_program("export", make_words("export", {**laid, "to": "svg", "out": picture}, folder))
            return picture.read_text(encoding="utf-8")


def _keep(value: Any) -> Any:
    """A file as its bytes; one that cannot be read as its name, which `export` then complains of."""
    if isinstance(value, (str, os.PathLike)):
        try:
            return Path(value).read_bytes()
        except OSError:
            return value
    return value


def _lay(path: Path, value: Any) -> Optional[Any]:
    if isinstance(value, bytes):
        path.write_bytes(value)
        return path
    return value
