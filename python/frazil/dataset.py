"""`export_data`: a data set of PyTorch, or any sequence of samples, as files that Frazil trains on (docs/python.md, Data).

Samples are taken one after the other and written as they come, so that memory holds one of them, or one batch of `collate`.
"""

import sys
from pathlib import Path
from typing import Any, Callable, Iterator, Optional, Union

from .errors import bad_input
from .output_path import check_output
from .shards import LABELS, DataFiles, ShardWriter


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
    Numbers become int64 or float32. Says on stderr if there are no labels. Raises FrazilError, and writes nothing, where samples differ in
    names, types or shapes.
    """
    path = check_output(path)
    if batch < 1:
        raise bad_input(path, f"batch={batch}", "a sample or more")
    writer = ShardWriter(path, shard_bytes)
    try:
        split = _Split(path, labels, inputs)
        for place, sample in _batches(dataset, collate, batch):
            writer.add(split.parts_of(place, sample), place, collate is not None)
        data = writer.finish()
    finally:
        writer.clean()
    if LABELS not in data.tensors:
        print(f"frazil: {path} has no labels: predictions can be made of it, no training", file=sys.stderr)
    return data


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
