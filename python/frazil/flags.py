"""Keyword arguments as flags, one to one: `micro_batch=[4, 8]` is `--micro-batch 4,8`.

The program says which flags it has and what each takes, so that a new flag needs no line here. What a value may be:
a switch takes True or False; a time takes text such as `"1.5ms"` or an integer of nanoseconds, a size text or an integer of bytes;
a list takes a list; a file takes a path, or a dict, which is written as JSON for the program. None leaves a flag out.
"""

import difflib
import json
import os
from pathlib import Path
from typing import Any

from .errors import FrazilError
from .programs import Flag, list_flags

OWN = ("json", "help", "version", "describe-flags")  # what the package itself asks with, or what has no answer in JSON
UNITS = {"TIME": "ns", "SIZE": "B", "RATE": "B/s"}


def make_words(verb: str, given: dict, folder: Path) -> list:
    """The command line of `frazil VERB` for these keyword arguments. A dict for a file is written into `folder`."""
    known = list_flags(verb)
    words = []
    for keyword, value in given.items():
        flag = _find_flag(verb, keyword, known)
        if value is None or value is False:
            continue
        words += _words_of(verb, flag, value, folder)
    return words


def _find_flag(verb: str, keyword: str, known: dict) -> Flag:
    name = keyword.replace("_", "-")
    if name in known and name not in OWN:
        return known[name]
    names = [other.replace("-", "_") for other in known if other not in OWN]
    near = difflib.get_close_matches(keyword, names, 1)
    hint = f"; did you mean {near[0]}?" if near else f", expected one of {', '.join(names)}"
    raise FrazilError(f"frazil {verb}: found keyword {keyword}{hint}", 2, found=keyword)


def _words_of(verb: str, flag: Flag, value: Any, folder: Path) -> list:
    word = "--" + flag.name
    if value is True:
        if flag.kind:
            raise FrazilError(f"frazil {verb}: found True for {flag.name}, expected a value ({flag.kind})", 2, found="True")
        return [word]
    if isinstance(value, (list, tuple)):
        if flag.kind == "TEXT":  # a sentence holds commas of its own, so each is a flag
            return [part for one in value for part in (word, str(one))]
        return [word, ",".join(_text_of(verb, flag, one) for one in value)]
    if isinstance(value, dict):
        return [word, str(_write_dict(folder / f"{flag.name}.json", value))]
    return [word, _text_of(verb, flag, value)]


def _text_of(verb: str, flag: Flag, value: Any) -> str:
    if flag.kind in UNITS and not isinstance(value, str):
        if not hasattr(value, "__index__"):
            raise FrazilError(
                f"frazil {verb}: found {value!r} for {flag.name}, expected an integer of {UNITS[flag.kind]} or text with a unit", 2, found=repr(value)
            )
        return f"{value.__index__()}{UNITS[flag.kind]}"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _write_dict(path: Path, value: dict) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path
