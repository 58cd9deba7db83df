"""Whether a loss is the mean over the labels of a batch. Training averages the losses of micro-batches, weighted by the numbers of their
labels that count, which gives the loss of the batch for a mean alone."""

import math
from typing import Any

import torch

from .capture import first_line
from .operations import argument, base_name
from .program import Program, Size, Value, flatten
from .ranges import closure
from .refusals import refuse

SAMPLES = 8
SPLITS = (3, 6)  # samples of the first of two parts
IGNORED = [1, 6]  # one sample of each part
SEED = 1234
TOLERANCE = 1e-4  # relative
MEAN = 1  # a `reduction` of PyTorch's losses
LOSSES = ("cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss2d")
ADVICE = "the losses of micro-batches are averaged: give a mean over the labels"


def ignored_label(loss: Program) -> Any:
    """The label that the mean of a loss leaves out; None if there is none."""
    return next((_argument(node, "ignore_index") for node in loss.nodes if _is_mean(node)), None)


def counted_value(loss: Program) -> Any:
    """The value of whose entries a mean leaves those out: the labels, or what is made of them alone. None if there is none."""
    targets = [_argument(node, "target") for node in loss.nodes if _is_mean(node)]
    if len(targets) != 1:
        return None
    needed = {targets[0]}
    for node in reversed(loss.nodes):
        if not needed.isdisjoint(node.makes()):
            needed.update(node.reads())
    return targets[0] if needed & set(loss.inputs) == {loss.inputs[-1]} else None


def check_mean(program: Program, loss: Program, positions: list, call: Any, tensors: list, labels: torch.Tensor, dimensions: list) -> None:
    """Refuses a loss that is no mean over the labels.

    program: of the model; `loss` reads those of its output tensors at `positions`. call(tensors, labels): the loss itself.
    tensors, labels: of the example batch; dimensions: of each tensor, {dimension: size} of those whose size depends on n.
    """
    for node in loss.nodes:
        if _is_mean(node) and _argument(node, "weight") is not None:
            refuse(
                f"the loss divides by the weights of a batch's labels ({base_name(node.operation)} with weight), but {ADVICE} of "
                'what each label adds, (F.cross_entropy(outputs, labels, reduction="none") * weight[labels]).mean()',
                source=node.source,
            )
    outputs = [item for item in program.outputs if isinstance(item, Value)]
    for value in (outputs[position] for position in positions):
        if "n" not in flatten(value.shape) and _depends_on_samples(value):
            refuse(f"the loss reads an output of shape {value.shape} that depends on the batch and has no row for each sample, but {ADVICE}")
    tensors, labels = _draw_batch(tensors, labels, dimensions)
    ignored = ignored_label(loss)
    if ignored is not None and counted_value(loss) not in (None, loss.inputs[-1]):
        # They are counted where they are read, which here is the same share of each sample's.
        counting = labels[labels != ignored]
        labels = labels.masked_fill(labels == ignored, int(counting[0]) if len(counting) else 0)
    _compare(call, tensors, labels, dimensions, ignored)
    others = [node for node in loss.nodes if base_name(node.operation) in LOSSES]
    if ignored is None and others and not labels.is_floating_point():  # what leaves labels out by itself may do so in other batches only
        _compare(call, tensors, labels.index_fill(0, torch.tensor(IGNORED), _argument(others[0], "ignore_index")), dimensions, None, is_sure=False)


def _argument(node: Any, name: str) -> Any:
    return argument(node.operation, node.arguments, node.keywords, name)


def _is_mean(node: Any) -> bool:
    return base_name(node.operation) in LOSSES and _argument(node, "reduction") == MEAN


def _depends_on_samples(value: Value) -> bool:
    read = [item for node in closure([value.node] if value.node else []) for item in flatten([node.arguments, list(node.keywords.values())])]
    return any(isinstance(item, Size) or (isinstance(item, Value) and item.kind == "input") for item in read)


def _draw_batch(tensors: list, labels: torch.Tensor, dimensions: list) -> tuple:
    """Rows of the example batch over and over, floats made smaller by random parts, so that no two outputs are equal by luck."""
    generator = torch.Generator().manual_seed(SEED)
    rows = torch.arange(SAMPLES) % labels.shape[0]
    drawn = []
    for tensor, ours in zip(tensors, dimensions):
        tensor = _take(tensor, ours, rows, labels.shape[0])
        scale = 0.5 + 0.5 * torch.rand(tensor.shape, generator=generator)
        drawn.append(tensor * scale if tensor.is_floating_point() and ours else tensor)
    return drawn, labels[rows]


def _take(tensor: torch.Tensor, dimensions: Any, rows: torch.Tensor, count: int) -> torch.Tensor:
    """The rows of some of `count` samples, along each of the dimensions that have one or several for each sample."""
    for dimension in dimensions:
        each = tensor.shape[dimension] // count
        tensor = tensor.index_select(dimension, (rows[:, None] * each + torch.arange(each)).flatten())
    return tensor


def _compare(call: Any, tensors: list, labels: torch.Tensor, dimensions: list, ignored: Any, is_sure: bool = True) -> None:
    """is_sure: whether the loss must take these labels."""

    def part(first: int, last: int) -> tuple:
        rows = torch.arange(first, last)
        mine = labels[rows]
        count = mine.numel() if ignored is None else int((mine != ignored).sum())
        return count and float(call([_take(one, ours, rows, SAMPLES) for one, ours in zip(tensors, dimensions)], mine)), count

    try:
        with torch.no_grad():
            found = [(part(0, SAMPLES), (part(0, split), part(split, SAMPLES))) for split in SPLITS]
    except Exception as error:  # losses raise errors of many kinds
        if is_sure:
            refuse(f"fails for {SAMPLES} samples with labels of the example, or for a part of them ({first_line(error)})", whole="the loss")
        return
    for split, ((whole, count), parts) in zip(SPLITS, found):
        mean = sum(loss * own for loss, own in parts) / max(count, 1)
        if math.isfinite(whole) and not abs(whole - mean) <= TOLERANCE * max(abs(whole), *(abs(loss) for loss, _ in parts)):
            refuse(
                f"the loss is no mean over the labels: {whole:.6g} for {SAMPLES} samples, {mean:.6g} as the mean over the first {split} and the "
                f"others, weighted by their labels; {ADVICE} (reduction='mean', no sum, no maximum, no comparison of samples)"
            )
