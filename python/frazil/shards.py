"""Samples into safetensors files of a limited size, as they come.

While a file is written, each of its tensors lies in a file of its own beside it, since the header, which comes first, tells how many samples
there are. All of them have other names until `finish`, so that what fails leaves nothing.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import bad_input
from .tensors import Tensor, count_bytes, make_header, order_of
from .to_training_types import to_training_type

LABELS = "labels"  # the name of the labels in a file


@dataclass(frozen=True)
class DataFiles:
    """What was written: files in their order, samples in all, and type and shape of one sample of each tensor."""

    files: list
    samples: int
    tensors: dict


class ShardWriter:
    """Takes samples and leaves files under other names beside `path`, which `finish` gives their own.

    role: under which key the metadata of the files names their tensors, labels aside.
    """

    def __init__(self, path: Path, shard_bytes: int, role: str = "inputs"):
        if shard_bytes < 1:
            raise bad_input(path, f"shard_bytes={shard_bytes}", "a byte or more")
        self._path, self._shard_bytes, self._role = path, shard_bytes, role
        self._mine = f".{path.name}.{os.getpid()}"
        self._kinds: dict = {}  # of one sample: (kind, shape) by name
        self._open: dict = {}
        self._samples = self._samples_before = 0
        self._shards: list = []

    def add(self, parts: dict, place: int, is_batch: bool) -> None:
        """Takes a sample, or a batch, as tensors by name; `place` is the number of its first sample."""
        made = {name: self._convert(name, value, place) for name, value in parts.items()}
        counts = {name: tensor.shape[0] if is_batch and tensor.shape else 1 for name, tensor in made.items()}
        if is_batch and (len(set(counts.values())) != 1 or not all(tensor.shape for tensor in made.values())):
            raise bad_input(self._path, f"tensors of {counts} samples in the batch from sample {place}", "equally many in each")
        kinds = {name: (tensor.kind, tensor.shape[1:] if is_batch else tensor.shape) for name, tensor in made.items()}
        self._expect(kinds, place)
        count, done = next(iter(counts.values())), 0
        while done < count:
            part = min(count - done, self._room())
            self._append(made, count, done, part)
            done += part
            if self._room() == 0:
                self._close_shard(is_last=False)

    def _convert(self, name: str, value: Any, place: int) -> Tensor:
        try:
            return to_training_type(value)
        except (TypeError, OverflowError) as error:
            raise bad_input(self._path, f"{name} in sample {place} ({error})", "numbers that are int64 or float32") from None

    def _expect(self, kinds: dict, place: int) -> None:
        self._kinds = self._kinds or kinds
        for name in kinds:
            if not isinstance(name, str) or not name or "," in name or name == "__metadata__":
                raise bad_input(self._path, f"{name!r} as the name of a tensor", "a text without commas, which divide the names in the file")
        for name, found in kinds.items():
            if name not in self._kinds:
                raise bad_input(self._path, f"{name} in sample {place}", "it in all samples or in none")
            if found != self._kinds[name]:
                expected = _told(self._kinds[name]) + " as before"
                hint = "; a collate that pads gives equal shapes" if found[0] == self._kinds[name][0] else ""
                raise bad_input(self._path, f"{_told(found)} as {name} in sample {place}", expected + hint)
        if len(kinds) != len(self._kinds):
            raise bad_input(self._path, f"no {', '.join(self._kinds.keys() - kinds.keys())} in sample {place}", "it in all samples or in none")

    def _room(self) -> int:
        """Samples that the open file still takes; an empty one takes at least one."""
        size = sum(count_bytes(kind, shape) for kind, shape in self._kinds.values())
        return max(self._shard_bytes // max(size, 1), 1) - self._samples

    def _append(self, made: dict, count: int, done: int, part: int) -> None:
        for name, tensor in made.items():
            if name not in self._open:
                self._open[name] = self._path.with_name(f"{self._mine}.{len(self._open)}").open("w+b")
            view = memoryview(tensor.data).cast("B")
            size = view.nbytes // count
            self._open[name].write(view[done * size : (done + part) * size])
        self._samples += part

    def _close_shard(self, is_last: bool) -> None:
        """Writes the header and, behind it, what lies in the files of the tensors."""
        if self._samples == 0 and not (is_last and not self._shards):
            return
        shard = self._path.with_name(f"{self._mine}.shard{len(self._shards)}")
        self._shards.append(shard)
        parts = {name: (kind, (self._samples, *shape)) for name, (kind, shape) in self._kinds.items()}
        with shard.open("wb") as file:
            file.write(make_header(parts, self._metadata()))
            for name in order_of(parts):
                self._open[name].seek(0)
                shutil.copyfileobj(self._open[name], file, 1 << 20)
                self._open[name].seek(0)
                self._open[name].truncate()
        self._samples_before, self._samples = self._samples_before + self._samples, 0

    def _metadata(self) -> dict:
        return {self._role: ",".join(name for name in self._kinds if name != LABELS)}

    def finish(self) -> DataFiles:
        """Gives the files their names."""
        if not self._kinds:
            raise bad_input(self._path, "a data set without samples", "at least one")
        self._close_shard(is_last=True)
        count = len(self._shards)
        ends = [""] if count == 1 else [f"-{at:05d}-of-{count:05d}" for at in range(1, count + 1)]
        files = [self._path.with_name(f"{self._path.stem}{end}{self._path.suffix}") for end in ends]
        for shard, file in zip(self._shards, files):
            shard.replace(file)
        return DataFiles(files, self._samples_before, {name: (kind, list(shape)) for name, (kind, shape) in self._kinds.items()})

    def clean(self) -> None:
        """Removes what is not finished."""
        for file in self._open.values():
            file.close()
            Path(file.name).unlink(missing_ok=True)
        for shard in self._shards:
            shard.unlink(missing_ok=True)


def _told(kind: tuple) -> str:
    return f"{kind[0]} of shape {list(kind[1])}"
