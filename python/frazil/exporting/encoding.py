"""Operations, values and sizes in the words of the model file (docs/model-file.md)."""

import math
from typing import Any

import torch

from .operations import base_name, qualified_name
from .program import Node, Size, Value
from .refusals import refuse

LARGEST = 2**63 - 1


def dtype_word(dtype: torch.dtype) -> str:
    return str(dtype).rpartition(".")[2]


def encode_nodes(nodes: list, name_of: Any) -> list:
    """name_of(node, place, value): the name under which a node reads a value. Numbers the random draws from 0."""
    draws = 0
    encoded = []
    for node in nodes:
        encoded.append(_encode_node(node, name_of, draws))
        draws += node.draws
    return encoded


def schemas_of(nodes: list) -> dict:
    """The schema text of each operation, by its qualified name."""
    return {qualified_name(node.operation): str(node.operation._schema) for node in nodes}


def _encode_node(node: Node, name_of: Any, draw: int) -> dict:
    places = iter(range(len(node.reads())))
    encode = lambda item: _encode(item, node, lambda value: name_of(node, next(places), value))  # noqa: E731
    arguments = [encode(item) for item in node.arguments]
    keywords = {name: encode(item) for name, item in node.keywords.items()}
    _open_end(node, arguments)
    encoded: dict = {"op": qualified_name(node.operation), "args": arguments, "kwargs": keywords}
    encoded["out"] = [{"list": [_out(one) for one in out]} if isinstance(out, list) else _out(out) for out in node.outs]
    if node.draws:
        encoded["random"] = draw
    if node.no_grad:
        encoded["no_grad"] = True
    return {**encoded, "path": node.path, "source": node.source}


def _open_end(node: Node, arguments: list) -> None:
    """A slice to the largest integer is one to the end."""
    if base_name(node.operation) == "slice" and len(arguments) > 3 and arguments[3] == LARGEST:
        arguments[3] = None


def _out(value: Any) -> Any:
    return value.name if value is not None else None


def _encode(item: Any, node: Node, name: Any) -> Any:
    if isinstance(item, (list, tuple)):
        return [_encode(one, node, name) for one in item]
    if isinstance(item, Value):
        return {"v": name(item)}
    if isinstance(item, float) and not math.isfinite(item):
        return {"float": "nan" if math.isnan(item) else "inf" if item > 0 else "-inf"}
    if item is None or isinstance(item, (bool, int, float, str)):
        return item
    return _encode_word(item, node)


def _encode_word(item: Any, node: Node) -> dict:
    if isinstance(item, Size):
        return {"size": item.polynomial}
    if isinstance(item, torch.dtype):
        return {"dtype": dtype_word(item)}
    if isinstance(item, torch.device):
        return {"device": True}
    if isinstance(item, torch.layout):
        return {"layout": dtype_word(item)}
    if isinstance(item, torch.memory_format):
        return {"memory_format": dtype_word(item).removesuffix("_format")}
    refuse(f"{qualified_name(node.operation)} takes {type(item).__name__}, which a model file cannot hold", node.path, node.source)
    return {}
