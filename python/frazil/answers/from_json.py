"""Dataclasses of the JSON that programs answer with.

Keys of an answer are names of fields. A field without a default must be there; a key that no field has is kept in `raw` alone, so that a
newer program can be asked. Times are integers of nanoseconds, sizes integers of bytes, shares and rates floats.
"""

import dataclasses
import functools
import types
import typing
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from ..errors import FrazilError
from ..version import VERSION


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of an answer; `raw` is its JSON."""

    raw: dict = field(repr=False, compare=False)


def optional(**options: Any) -> Any:
    """A field that answers do not always have: None then."""
    return field(default=None, **options)


def from_json(kind: type, value: dict, **more: Any) -> Any:
    """A dataclass of `kind` from a JSON object; `more` gives fields that are not of the answer. Raises FrazilError at a key that is missing."""
    if not isinstance(value, dict):
        raise _misfit(f"{value!r}", f"an object for {kind.__name__}")
    hints, filled = _hints_of(kind), {"raw": value, **more}
    for one in dataclasses.fields(kind):
        if one.name in filled:
            continue
        if one.name in value:
            filled[one.name] = _convert(hints[one.name], value[one.name], one.name)
        elif one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING:
            raise _misfit(f"an answer without {one.name}", f"it in {kind.__name__}")
    return kind(**filled)


@functools.lru_cache(maxsize=None)
def _hints_of(kind: type) -> dict:
    return typing.get_type_hints(kind)


def _convert(hint: Any, value: Any, name: str) -> Any:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, getattr(types, "UnionType", Union)):
        if value is None:
            return None
        return _convert(next(one for one in inner if one is not type(None)), value, name)
    if origin is list:
        return [_convert(inner[0], one, name) for one in _expect(list, value, name)]
    if origin is dict:
        return {key: _convert(inner[1], one, name) for key, one in _expect(dict, value, name).items()}
    if dataclasses.is_dataclass(hint):
        return from_json(hint, value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value if hint is Any else _expect(hint, value, name)


def _expect(kind: type, value: Any, name: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _misfit(f"{value!r} for {name}", f"{kind.__name__}")
    return value


def _misfit(found: str, expected: str) -> FrazilError:
    sentence = f"found {found}, expected {expected}; the package is of version {VERSION}: are the programs, too?"
    return FrazilError(sentence, 1, found=found, expected=expected)


def time_text(time_ns: Optional[int]) -> str:
    """A time for people: `91.584 ms`."""
    if time_ns is None:
        return "-"
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if abs(time_ns) >= size:
            return f"{time_ns / size:.3f} {unit}"
    return f"{time_ns} ns"


def bytes_text(size: Optional[int]) -> str:
    """A size for people: `781.25 KiB`."""
    if size is None:
        return "-"
    for unit, count in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if abs(size) >= count:
            return f"{size / count:.2f} {unit}"
    return f"{size} B"
