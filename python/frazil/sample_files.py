"""Files of samples as one table: any rows of it, without reading the others."""

from pathlib import Path
from typing import Any

from .errors import FrazilError, bad_input
from .shards import LABELS, DataFiles
from .tensors import Tensor, count_bytes, open_tensors


class SampleFiles:
    """The samples of one or several files of `export_data`, which follow one another as in training.

    paths: the files; inputs: the names of the inputs in the order in which a model reads them; count: how many samples there are.
    """

    def __init__(self, data: Any):
        """data: a path, a list of paths, or DataFiles. Raises FrazilError where a file is no data, or another one's samples are of another form."""
        paths = data.files if isinstance(data, DataFiles) else data if isinstance(data, (list, tuple)) else [data]
        if not paths:
            raise FrazilError("found no file of samples, expected one or several", 2)
        self.paths = [Path(path) for path in paths]
        self._tensors: list = []
        self._ends: list = []
        self.count = 0
        for path in self.paths:
            tensors, metadata = open_tensors(path)
            if not self._tensors:
                self.inputs = _names_of(path, tensors, metadata)
                self._names = [*self.inputs, *([LABELS] if LABELS in tensors else [])]
            self._add(path, tensors)

    def _add(self, path: Path, tensors: dict) -> None:
        missing = [name for name in self._names if name not in tensors]
        if missing:
            raise bad_input(path, f"no tensor {missing[0]}", f"{', '.join(self._names)}, as in {self.paths[0]}")
        counts = {name: tensors[name].shape[0] if tensors[name].shape else 0 for name in self._names}
        if len(set(counts.values())) != 1:
            raise bad_input(path, f"tensors of {', '.join(f'{count} samples ({name})' for name, count in counts.items())}", "equally many in each")
        for name in self._names if self._tensors else []:
            found, expected = ((one[name].kind, list(one[name].shape[1:])) for one in (tensors, self._tensors[0]))
            if found != expected:
                raise bad_input(path, f"{found[0]} of shape {found[1]} as {name}", f"{expected[0]} of shape {expected[1]}, as in {self.paths[0]}")
        self._tensors.append(tensors)
        self.count += next(iter(counts.values()))
        self._ends.append(self.count)

    def take(self, first: int, last: int) -> dict:
        """The samples from first up to, without, last: Tensors by name, labels last where there are any."""
        return {name: self._join(name, first, last) for name in self._names}

    def place(self, sample: int) -> Path:
        """The file in which a sample lies."""
        return next(path for path, end in zip(self.paths, self._ends) if sample < end)

    def _join(self, name: str, first: int, last: int) -> Tensor:
        parts, begin = [], 0
        kind, shape = self._tensors[0][name].kind, self._tensors[0][name].shape[1:]
        size = count_bytes(kind, shape)
        for tensors, end in zip(self._tensors, self._ends):
            rows = slice(max(first - begin, 0) * size, max(min(last, end) - begin, 0) * size)
            parts.append(memoryview(tensors[name].data).cast("B")[rows])
            begin = end
        return Tensor(kind, (last - first, *shape), b"".join(parts))


def _names_of(path: Path, tensors: dict, metadata: dict) -> list:
    """The inputs of a file in their order, as its metadata tells it; it need not where there is one alone."""
    told = [name for name in metadata.get("inputs", "").split(",") if name]
    names = told or [name for name in tensors if name != LABELS]
    if len(names) != 1 and not told:
        raise bad_input(path, f"{len(names)} inputs without an order", "one input, or metadata that names them in order (inputs)")
    unknown = [name for name in names if name not in tensors]
    if unknown:
        raise bad_input(path, f"no tensor {unknown[0]}, which its metadata names as an input", "one of that name")
    return names
