"""`export_data`: a data set of PyTorch, or any sequence of samples, as files that Frazil trains on (docs/python.md, Data).

Samples are taken one after the other and written as they come, so that memory holds one of them, or one batch of `collate`. While a file
is written, each of its tensors lies in a file of its own beside it, since the header, which comes first, tells how many samples there are.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, Optional, Union

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


def export_data(
    dataset: Any,
    path: Any,
    labels: Union[str, int, Callable, None] = None,
    collate: Optional[Callable] = None,
    *,
    inputs: Optional[list] = None,
    batch: int = 64,
    shard_bytes: int = 1 << 30,
) -> DataFiles:
    """Writes a data set to `path`, or to `NAME-00001-of-00003.safetensors` and so on where it is larger than `shard_bytes`.

    A sample is a dict of tensors (arrays, numbers), a tuple of them, or one of them. `labels` says which is the label: a key, a place in
    the tuple, or a function of a sample; if nothing is said, it is the key `labels`, `label` or `y`, or the last of a tuple of two or more.
    `inputs` names the inputs of tuples in order (default: `input0`, `input1`, ...); of dicts it chooses keys and their order.
    `collate` makes a batch, of the same form, out of a list of at most `batch` samples, as that of a DataLoader does.
    Numbers become int64 or float32. Raises FrazilError, and writes nothing, where samples differ in names, types or shapes.
    """
    path = Path(path)
    writer = _ShardWriter(path, shard_bytes)
    try:
        split = _Split(path, labels, inputs)
        for place, sample in _batches(dataset, collate, batch):
            writer.add(split.parts_of(place, sample), place, collate is not None)
        return writer.finish(split.names)
    finally:
        writer.clean()


def _samples(dataset: Any) -> Iterator:
    """All samples in order; a data set that cannot be gone through is asked by number."""
    if hasattr(dataset, "__iter__") or not hasattr(dataset, "__len__"):
        return iter(dataset)
    return (dataset[at] for at in range(len(dataset)))


def _batches(dataset: Any, collate: Optional[Callable], batch: int) -> Iterator:
    """Samples with their numbers, or batches with the number of their first sample."""
    samples = _samples(dataset)
    if collate is None:
        yield from enumerate(samples)
        return
    place, held = 0, []
    for sample in samples:
        held.append(sample)
        if len(held) == batch:
            yield place, collate(held)
            place, held = place + len(held), []
    if held:
        yield place, collate(held)


class _Split:
    """Which parts of a sample are inputs and which is the label; decided at the first sample."""

    def __init__(self, path: Path, labels: Any, inputs: Optional[list]):
        self._path, self._labels, self._inputs = path, labels, inputs
        self.names: list = []

    def parts_of(self, place: int, sample: Any) -> dict:
        """The tensors of a sample by name, labels last."""
        named, label = self._name(place, sample)
        if not self.names:
            self.names = list(self._inputs or named)
        if (missing := [name for name in self.names if name not in named]) or (not self._inputs and len(named) != len(self.names)):
            raise self._refuse(place, f"inputs {', '.join(map(str, named))}", ", ".join(missing or self.names))
        parts = {name: named[name] for name in self.names}
        if LABELS in parts:
            raise self._refuse(place, f"an input that is named {LABELS}", "another name, or `labels` to say which is the label")
        return {**parts, **({LABELS: label} if label is not None else {})}

    def _name(self, place: int, sample: Any) -> tuple:
        if hasattr(sample, "keys"):
            return self._name_dict(place, {key: sample[key] for key in sample.keys()})
        values = list(sample) if isinstance(sample, (tuple, list)) else [sample]
        label = self._labels(sample) if callable(self._labels) else None
        at = self._labels if isinstance(self._labels, int) else -1 if self._labels is None and len(values) > 1 else None
        if isinstance(self._labels, str) or (at is not None and not -len(values) <= at < len(values)):
            raise self._refuse(place, f"a sample of {len(values)} parts", f"one that has the label {self._labels!r}")
        if at is not None:
            label = values.pop(at)
        names = self._inputs or [f"input{number}" for number in range(len(values))]
        if len(names) != len(values):
            raise self._refuse(place, f"{len(values)} inputs", f"{len(names)}, as they are named")
        return dict(zip(names, values)), label

    def _name_dict(self, place: int, sample: dict) -> tuple:
        if callable(self._labels):
            return sample, self._labels(sample)
        key = self._labels if self._labels is not None else next((key for key in ("labels", "label", "y") if key in sample), None)
        if key is not None and key not in sample:
            raise self._refuse(place, f"a sample with {', '.join(map(str, sample))}", f"one that has the label {key!r}")
        return {name: value for name, value in sample.items() if name != key}, sample.get(key) if key is not None else None

    def _refuse(self, place: int, found: str, expected: str) -> Exception:
        return bad_input(self._path, f"{found} in sample {place}", expected)


class _ShardWriter:
    """Takes samples and leaves files under other names beside `path`, which `finish` gives their own."""

    def __init__(self, path: Path, shard_bytes: int):
        self._path, self._shard_bytes = path, shard_bytes
        self._mine = f".{path.name}.{os.getpid()}"
        self._kinds: dict = {}  # of one sample: (kind, shape) by name
        self._open: dict = {}
        self._samples = self._samples_before = 0
        self._shards: list = []

    def add(self, parts: dict, place: int, is_batch: bool) -> None:
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
        for name, found in kinds.items():
            if name not in self._kinds:
                raise bad_input(self._path, f"{name} in sample {place}", "it in all samples or in none")
            if found != self._kinds[name]:
                kind, shape = self._kinds[name]
                hint = "; a collate that pads gives equal shapes" if found[0] == kind else ""
                raise bad_input(self._path, f"{found[0]} of shape {list(found[1])} as {name} in sample {place}", f"{kind} of shape {list(shape)} as before{hint}")
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
        return {"inputs": ",".join(name for name in self._kinds if name != LABELS)}

    def finish(self, names: list) -> DataFiles:
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
