"""Safetensors files in pure Python: an 8-byte length, a JSON header, then the bytes of all tensors (little-endian, row by row).

Tensors of PyTorch and arrays of numpy are taken by what they can do, and are made only where they are asked for: neither is imported here
before. A file is written under another name and renamed, so it is whole or not there.
"""

import ctypes
import json
import math
import mmap
import os
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from .errors import bad_input
from .output_path import check_output

# Name in a file -> bytes of an element, code of `struct` (empty: it has no such number), names in PyTorch and numpy.
KINDS = {
    "F64": (8, "d", "float64", "<f8"),
    "F32": (4, "f", "float32", "<f4"),
    "F16": (2, "e", "float16", "<f2"),
    "BF16": (2, "", "bfloat16", ""),
    "I64": (8, "q", "int64", "<i8"),
    "I32": (4, "i", "int32", "<i4"),
    "I16": (2, "h", "int16", "<i2"),
    "I8": (1, "b", "int8", "|i1"),
    "U8": (1, "B", "uint8", "|u1"),
    "BOOL": (1, "?", "bool", "|b1"),
}
LONGEST_HEADER = 100_000_000  # as the library of Hugging Face has it


@dataclass(frozen=True)
class Tensor:
    """A dense tensor: `kind` is a key of KINDS, `data` a buffer of exactly its bytes."""

    kind: str
    shape: tuple
    data: Any = field(repr=False)

    def numbers(self) -> list:
        """All numbers, row by row."""
        code, count = KINDS[self.kind][1], math.prod(self.shape)
        if code:
            return list(struct.unpack(f"<{count}{code}", self.data))
        halves = struct.unpack(f"<{count}H", self.data)  # bfloat16 is the upper half of a float32
        return list(struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *(half << 16 for half in halves))))

    def tolist(self) -> Any:
        """Numbers in nested lists; a plain number where the tensor has no dimension."""
        return _nest(self.numbers(), self.shape)

    def numpy(self) -> Any:
        """An array of numpy that owns its memory."""
        import numpy

        name = KINDS[self.kind][3]
        if not name:
            raise TypeError(f"found a tensor of {self.kind}, expected one that numpy has a type for")
        return numpy.frombuffer(self.data, dtype=name).reshape(self.shape).copy()

    def torch(self) -> Any:
        """A tensor of PyTorch that owns its memory."""
        import torch

        kind = getattr(torch, KINDS[self.kind][2])
        if not memoryview(self.data).nbytes:
            return torch.empty(self.shape, dtype=kind)
        return torch.frombuffer(bytearray(self.data), dtype=kind).reshape(self.shape)


def make_tensor(value: Any) -> Tensor:
    """A Tensor of one of PyTorch, of an array of numpy, or of numbers in nested lists (int64 or float32). Raises TypeError at anything else."""
    if isinstance(value, Tensor):
        return value
    if hasattr(value, "data_ptr") and hasattr(value, "detach"):
        return _from_torch(value)
    if hasattr(value, "dtype") and hasattr(value, "tobytes"):
        return _from_numpy(value)
    return _from_numbers(value)


def read_tensors(path: Any) -> dict:
    """The tensors of a file by name. They lie in memory that is mapped, not read. Raises FrazilError where the file is no good."""
    return open_tensors(path)[0]


def open_tensors(path: Any) -> tuple:
    """The tensors of a file by name, and its metadata (texts by name)."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) if size else memoryview(b"")
    except OSError as error:
        raise bad_input(path, (error.strerror or str(error)).lower(), "a readable file") from None
    header, begin = _read_header(path, content)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise bad_input(path, "metadata that is no object of texts", "texts by name")
    tensors, at = {}, 0
    for name, told in sorted(header.items(), key=lambda one: _offsets_of(path, *one)):
        kind, shape, (first, last) = _check_tensor(path, name, told)
        if first != at or last > len(content) - begin:
            raise bad_input(path, f"bytes {first} to {last} for tensor {name}", f"its bytes to begin at {at} and end within {len(content) - begin}")
        tensors[name], at = Tensor(kind, shape, content[begin + first : begin + last]), last
    if at != len(content) - begin:
        raise bad_input(path, f"{len(content) - begin} bytes of tensors", f"{at}, as the header says")
    return tensors, metadata


def write_tensors(path: Any, tensors: dict, metadata: Optional[dict] = None) -> None:
    """Writes tensors by name (whatever `make_tensor` takes) and metadata (texts by name)."""
    made = {name: make_tensor(value) for name, value in tensors.items()}
    parts = {name: (tensor.kind, tensor.shape) for name, tensor in made.items()}
    path = check_output(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            file.write(make_header(parts, metadata or {}))
            for name in order_of(parts):
                file.write(made[name].data)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def order_of(parts: dict) -> list:
    """Names in the order of their bytes: wide elements first, so that each tensor is aligned to its own."""
    return sorted(parts, key=lambda name: (-KINDS[parts[name][0]][0], name))


def make_header(parts: dict, metadata: dict) -> bytes:
    """The length and the header of a file with tensors of these (kind, shape) by name, as `order_of` orders them."""
    header, at = {"__metadata__": dict(metadata)} if metadata else {}, 0
    for name in order_of(parts):
        kind, shape = parts[name]
        size = count_bytes(kind, shape)
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def count_bytes(kind: str, shape: tuple) -> int:
    return math.prod(shape) * KINDS[kind][0]


def _read_header(path: Path, content: memoryview) -> tuple:
    length = struct.unpack("<Q", content[:8])[0] if len(content) >= 8 else None
    if length is None or length > min(len(content) - 8, LONGEST_HEADER):
        raise bad_input(path, f"a file of {len(content)} bytes that does not hold the header it tells of", "a safetensors file")
    try:
        header = json.loads(bytes(content[8 : 8 + length]), object_pairs_hook=_refuse_twins)
    except ValueError as error:
        raise bad_input(path, f"a header that is no JSON ({error})", "a safetensors file") from None
    if not isinstance(header, dict):
        raise bad_input(path, "a header that is no object", "a safetensors file")
    return header, 8 + length


def _refuse_twins(pairs: list) -> dict:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _offsets_of(path: Path, name: str, told: Any) -> list:
    offsets = told.get("data_offsets") if isinstance(told, dict) else None
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(type(at) is int and at >= 0 for at in offsets):
        raise bad_input(path, f"{offsets!r} as data_offsets of tensor {name}", "where its bytes begin and end")
    return offsets


def _check_tensor(path: Path, name: str, told: dict) -> tuple:
    kind, shape, offsets = told.get("dtype"), told.get("shape"), told["data_offsets"]
    if kind not in KINDS:
        raise bad_input(path, f"type {kind!r} of tensor {name}", f"one of {', '.join(KINDS)}")
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise bad_input(path, f"shape {shape!r} of tensor {name}", "a list of sizes")
    if offsets[1] - offsets[0] != count_bytes(kind, tuple(shape)):
        raise bad_input(path, f"{offsets[1] - offsets[0]} bytes for tensor {name}", f"{count_bytes(kind, tuple(shape))}, by its type and shape")
    return kind, tuple(shape), offsets


def _from_torch(value: Any) -> Tensor:
    name = str(value.dtype).rpartition(".")[2]
    kind = next((kind for kind, (_, _, theirs, _) in KINDS.items() if theirs == name), None)
    if kind is None:
        raise TypeError(f"found a tensor of {value.dtype}, expected one of {', '.join(theirs for _, _, theirs, _ in KINDS.values())}")
    held = value.detach().cpu().contiguous()  # kept until its bytes are copied
    if held.is_conj() or held.is_neg():
        held = held.resolve_conj().resolve_neg()
    size = count_bytes(kind, tuple(held.shape))
    return Tensor(kind, tuple(held.shape), ctypes.string_at(held.data_ptr(), size) if size else b"")


def _from_numpy(value: Any) -> Tensor:
    kind = next((kind for kind, (_, _, name, _) in KINDS.items() if name == value.dtype.name), None)
    if kind is None:
        raise TypeError(f"found an array of {value.dtype}, expected one of {', '.join(kind for kind in KINDS if KINDS[kind][3])}")
    return Tensor(kind, tuple(value.shape), value.astype(KINDS[kind][3], copy=False).tobytes())


def _from_numbers(value: Any) -> Tensor:
    numbers, shape = _flatten(value)
    if all(isinstance(one, int) for one in numbers):
        return Tensor("I64", shape, pack_numbers("q", numbers))
    return Tensor("F32", shape, pack_numbers("f", numbers))


def pack_numbers(code: str, numbers: list) -> bytes:
    """Little-endian bytes. Raises OverflowError where a number does not fit."""
    try:
        return struct.pack(f"<{len(numbers)}{code}", *numbers)
    except (struct.error, OverflowError):
        raise OverflowError("a number is out of range") from None


def _flatten(value: Any) -> tuple:
    if isinstance(value, (int, float)):
        return [value], ()
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"found a value of type {type(value).__name__}, expected a tensor, an array or numbers")
    parts = [_flatten(one) for one in value]
    if len({shape for _, shape in parts}) > 1:
        raise TypeError("found lists of unequal lengths, expected a dense tensor")
    return [one for numbers, _ in parts for one in numbers], (len(parts), *(parts[0][1] if parts else ()))


def _nest(numbers: list, shape: tuple) -> Any:
    if not shape:
        return numbers[0]
    for size in reversed(shape[1:]):
        if size == 0:
            return [_nest([], shape[1:]) for _ in range(shape[0])]
        numbers = [numbers[at : at + size] for at in range(0, len(numbers), size)]
    return numbers
