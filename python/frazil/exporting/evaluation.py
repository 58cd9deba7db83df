"""A model in evaluation mode, where it is another program than in training by more than the flags of its operations."""

import itertools
from typing import Any

from .layers import Layers
from .operations import base_name, flags_of, is_training, qualified_name
from .program import Value, map_items
from .refusals import refuse
from .tensor_file import raw_bytes

COPIES = "contiguous"


def is_same(nodes: list, others: list, kept: dict) -> bool:
    """Whether `nodes` can stand for `others`: they do the same but for flags, and copy into order at least as often.

    Attention with and without dropout lays its output out differently, and torch.export records only copies that happen.
    kept: the tensors of constants by Value.
    """
    return _count_copies(nodes) >= _count_copies(others) and _describe(nodes, kept) == _describe(others, kept)


def check_flags(nodes: list) -> None:
    """Refuses what drops or takes statistics of the batch in evaluation, too: there the reader of a file sets all flags."""
    for node in nodes:
        if is_training(node):
            refuse(f"{qualified_name(node.operation)} works in evaluation as in training, which a model file cannot hold", node.path, node.source)


def _count_copies(nodes: list) -> int:
    return sum(base_name(node.operation) == COPIES for node in nodes)


def add_evaluation(layers: Layers, others: Layers, kept: dict) -> None:
    """Gives each layer the nodes of its twin in `others`, the same model in evaluation mode, where they differ.

    Refuses twins that do not hand on the same values.
    """
    if len(layers.layers) != len(others.layers):
        refuse("has other layers in evaluation than in training")
    if [vars(edge) for edge in layers.edges] != [vars(edge) for edge in others.edges]:
        refuse("hands other values from layer to layer in evaluation than in training")
    _take_names(layers, others)
    for layer, other in zip(layers.layers, others.layers):
        if _types(layer.outputs) != _types(other.outputs) or _types(layer.inputs) != _types(other.inputs):
            refuse("has other values between its layers in evaluation than in training", layer.name)
        if not is_same(layer.nodes, other.nodes, kept):
            layer.evaluation = other.nodes
            layer.aliases.update(other.aliases)


def _take_names(layers: Layers, others: Layers) -> None:
    """Values between layers are called as in training; those inside get names that are free."""
    count = 1 + max(value.position for layer in layers.layers for node in layer.nodes for value in node.makes())
    for value in dict.fromkeys(value for layer in others.layers for node in layer.nodes for value in node.makes()):
        value.position += count
    for layer, other in zip(layers.layers, others.layers):
        for (value, _), (twin, _) in zip(layer.outputs, other.outputs):
            twin.position = value.position


def _types(values: list) -> list:
    return [(value.dtype, value.shape, value.kind) for value, _ in values]


def _describe(nodes: list, kept: dict) -> list:
    numbers: dict = {}
    count = itertools.count()

    def plain(item: Any) -> Any:
        if not isinstance(item, Value):
            return repr(item)
        if item.kind == "constant" and not item.tensor:
            return item.dtype, item.shape, raw_bytes(kept[item])
        if item.kind != "node":
            return f"{item.kind} {item.tensor}"
        if item not in numbers:
            numbers[item] = next(count)
        return numbers[item]

    described = []
    for node in nodes:
        if base_name(node.operation) == COPIES:
            numbers[node.makes()[0]] = plain(node.arguments[0])
            continue
        formals = node.operation._schema.arguments
        defaults = {formal.name: formal.default_value for formal in formals}
        given = {**defaults, **{formal.name: item for formal, item in zip(formals, node.arguments)}, **node.keywords}
        given = {name: value for name, value in given.items() if name not in flags_of(node.operation)}
        described.append((qualified_name(node.operation), map_items(plain, list(given.items())), map_items(plain, node.outs), node.no_grad))
    return described
