"""Whether the samples of a batch see each other in a layer: found by running its nodes on batches that differ in some samples.

Names and sizes of operations do not tell it: attention, an index or a product of matrices may go over the batch or not.
"""

from dataclasses import replace
from typing import Any

import torch

from .layers import Layer, Layers
from .operations import in_evaluation, mixes_samples, without_dropout
from .program import Node, Size, Value, map_items
from .sizes import depends_on_batch, evaluate

SEED = 1
CLOSE = 1e-3  # of the largest number, for halves of a batch, whose kernels may round otherwise


def note_mixing(layers: Layers, kept: dict, inputs: tuple) -> None:
    """Sets `mixes_samples` and `mixes_in_evaluation` of each layer. kept: parameters, buffers and constants by Value; inputs: an example batch of the model."""
    count = inputs[0].shape[0]
    made = dict(zip((value for value, _ in layers.layers[0].inputs), inputs))
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        for layer in layers.layers:
            taken = {value: made[value] for value, _ in layer.inputs}
            layer.mixes_samples = _mixes(layer, kept, taken, count)
            evaluating = replace(layer, nodes=[in_evaluation(node) for node in layer.nodes])
            layer.mixes_in_evaluation = layer.mixes_samples and _mixes(evaluating, kept, taken, count)
            made.update(_run(layer, kept, taken, count))


def _mixes(layer: Layer, kept: dict, taken: dict, count: int) -> bool:
    is_known = _has_outer(layer) or any(mixes_samples(node) for node in layer.nodes)
    return is_known or _is_seen_to_mix(layer, kept, taken, count)


def _has_outer(layer: Layer) -> bool:
    """Whether gradients go to a value without n in front, or one comes in that holds several samples otherwise."""
    sizes = [value.shape for value, _ in layer.outputs if value.carries]
    sizes += [value.shape for value, _ in layer.inputs if any(depends_on_batch(size) for size in value.shape)]
    return any(shape[:1] != ["n"] for shape in sizes)


def _is_seen_to_mix(layer: Layer, kept: dict, taken: dict, count: int) -> bool:
    torch.manual_seed(SEED)
    taken = {value: _with_noise(tensor) for value, tensor in taken.items()}
    try:
        whole = _run(layer, kept, taken, count)
        changed = [_keeps_others(layer, kept, taken, whole, torch.arange(count) % 2 == parity) for parity in (0, 1)]
        return not all(changed + [_gives_slice(layer, kept, taken, whole, rows) for rows in torch.arange(count).tensor_split(2)])
    except (RuntimeError, IndexError):  # an operation that takes no other batch than such as the example
        return True


def _keeps_others(layer: Layer, kept: dict, taken: dict, whole: dict, changed: torch.Tensor) -> bool:
    """Whether the samples that are not changed have the bits that they had."""
    other = {value: _change(value, tensor, changed) for value, tensor in taken.items()}
    return _agree(_rows(whole, ~changed), _rows(_run(layer, kept, other, len(changed)), ~changed), 0.0)


def _gives_slice(layer: Layer, kept: dict, taken: dict, whole: dict, rows: torch.Tensor) -> bool:
    """Whether these samples alone give what they give as part of the batch."""
    return _agree(_rows(whole, rows), _run(layer, kept, _rows(taken, rows), len(rows)), CLOSE)


def _rows(tensors: dict, rows: torch.Tensor) -> dict:
    return {value: tensor[rows] if value.shape[:1] == ["n"] else tensor for value, tensor in tensors.items()}


def _with_noise(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with numbers of other sizes and the same signs, so that no two samples are the same, whatever the example holds."""
    if not tensor.is_floating_point():
        return tensor
    finite = tensor[tensor.isfinite()]
    scale = float(finite.abs().mean()) if finite.numel() else 0.0
    return tensor + torch.rand(tensor.shape) * torch.where(tensor < 0, -1.0, 1.0) * (scale or 1.0)


def _change(value: Value, tensor: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """The tensor with these samples replaced: by others, or, of whole numbers, by those of the batch in another order."""
    if value.shape[:1] != ["n"] or not tensor.numel():
        return tensor
    changed = tensor.clone()
    shuffled = tensor.flatten()[torch.randperm(tensor.numel())].view(tensor.shape)
    changed[rows] = (_with_noise(shuffled) if tensor.is_floating_point() else shuffled)[rows]
    return changed


def _agree(tensors: dict, others: dict, close: float) -> bool:
    for value, tensor in tensors.items():
        one, other = tensor.double(), others[value].double()
        finite = one[one.isfinite()].abs()
        within = close * float(finite.max()) if finite.numel() else 0.0
        if one.shape != other.shape or not torch.allclose(one, other, rtol=0.0, atol=within, equal_nan=True):
            return False
    return True


def _run(layer: Layer, kept: dict, taken: dict, count: int) -> dict:
    """The outputs of a layer in training, without what dropout leaves out; other draws are the same each time."""
    torch.manual_seed(SEED)
    values = {value: tensor.clone() for value, tensor in taken.items()}
    values.update({value: kept[value].clone() for value in layer.kept("buffer")})
    values.update({value: kept[value] for kind in ("parameter", "constant") for value in layer.kept(kind)})
    for node in layer.nodes:
        _run_node(node, values, count)
    return {value: values[value] for value, _ in layer.outputs}


def _run_node(node: Node, values: dict, count: int) -> None:
    def load(item: Any) -> Any:
        if isinstance(item, Value):
            return values[item]
        return evaluate(item.polynomial, count) if isinstance(item, Size) else item

    arguments = without_dropout(node.operation, map_items(load, node.arguments))
    keywords = {name: map_items(load, item) for name, item in node.keywords.items()}
    result = node.operation(*arguments, **keywords)
    for out, item in zip(node.outs, result if isinstance(result, tuple) else [result]):
        pairs = zip(out, item) if isinstance(out, list) else [(out, item)]
        values.update({value: tensor for value, tensor in pairs if value is not None})
