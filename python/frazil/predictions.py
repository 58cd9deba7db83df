"""`export_predictions`: what a module of PyTorch gives for a data set, as files from which any library computes its metrics."""

import contextlib
from typing import Any, Iterator, Optional

from .errors import FrazilError, bad_input
from .output_path import check_output
from .sample_files import SampleFiles
from .shards import LABELS, DataFiles, ShardWriter


def export_predictions(
    model: Any,
    data: Any,
    path: Any,
    *,
    outputs: Optional[list] = None,
    batch: int = 64,
    shard_bytes: int = 1 << 30,
) -> DataFiles:
    """Runs a module over the samples of `data`, in order and in evaluation, and writes what it returns to `path`, beside the labels.

    data: a file of `export_data`, several, or what it returned; inputs are handed over in the order that the files tell, as to `export_model`.
    The files hold a row for each sample: of a dict (or an output of transformers) its tensors under their names, of a tuple `output0`,
    `output1`, ..., of a tensor alone `output`, and `labels` where the data has them. `outputs` says which of them are kept; without it those
    whose first dimension is the batch. `batch` samples are run at once, where the module's parameters lie. Modes and gradients of the module
    stay as they are. Raises FrazilError, and writes nothing, where the data is no data or would be replaced, or the module fails.
    """
    if not hasattr(model, "named_modules"):
        raise FrazilError(f"found a {type(model).__name__}, expected a module of PyTorch", 2)
    if batch < 1:
        raise FrazilError(f"found a batch of {batch}, expected at least one sample", 2)
    path = check_output(path)
    samples = SampleFiles(data)
    check_output(path, samples.paths)
    writer = ShardWriter(path, shard_bytes, "outputs")
    try:
        with _evaluation(model):
            for first in range(0, samples.count, batch):
                last = min(first + batch, samples.count)
                found = _run(model, samples, first, last, outputs)
                writer.add(found, first, True)
        return writer.finish()
    finally:
        writer.clean()


@contextlib.contextmanager
def _evaluation(model: Any) -> Iterator[None]:
    import torch

    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


def _run(model: Any, samples: SampleFiles, first: int, last: int, outputs: Optional[list]) -> dict:
    """The tensors of a batch by name, labels last."""
    rows = {name: tensor.torch() for name, tensor in samples.take(first, last).items()}
    device = next((parameter.device for parameter in model.parameters()), None)
    try:
        returned = model(*(rows[name].to(device) for name in samples.inputs))
    except Exception as error:  # torch and models raise errors of many kinds
        lines = str(error).strip().splitlines()
        told = f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
        raise bad_input(samples.place(first), f"samples {first} to {last - 1}, at which the module fails ({told})", "samples that it takes") from error
    found = _choose(_name(returned), last - first, outputs)
    return {**found, LABELS: rows[LABELS]} if LABELS in rows else found


def _name(returned: Any) -> dict:
    if hasattr(returned, "items"):
        return dict(returned.items())
    if isinstance(returned, (tuple, list)):
        return {f"output{place}": value for place, value in enumerate(returned)}
    return {"output": returned}


def _choose(named: dict, count: int, outputs: Optional[list]) -> dict:
    """Those of the outputs that are kept; each must be a tensor of so many rows."""
    rows = {name: value for name, value in named.items() if hasattr(value, "data_ptr") and value.dim() > 0 and value.shape[0] == count}
    chosen = list(rows) if outputs is None else outputs
    missing = [name for name in chosen if name not in rows]
    if missing or not chosen:
        what = f"no {', '.join(map(str, missing or ['tensor']))} with a row for each sample among what the module returns"
        raise FrazilError(f"found {what} ({', '.join(map(str, named))}), expected {', '.join(rows) or 'some'}", 2)
    if LABELS in chosen:
        raise FrazilError(f"found an output that is named {LABELS}, expected another name beside the labels of the data", 2)
    return {name: rows[name] for name in chosen}
