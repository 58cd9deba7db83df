"""Parts of a captured graph that are no plain operations: regions of torch.no_grad, and vectorised masks.

A region of set_grad_enabled is walked in place, its operations marked. A part under torch.vmap (Hugging Face makes its masks so) is
traced again into plain operations. That loses torch.no_grad, so it is done only where nothing depends on a parameter.
"""

import operator
from typing import Any, Optional

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from .refusals import refuse
from .sizes import evaluate, polynomial

NO_GRAD = "wrap_with_set_grad_enabled"
AUTOCAST = "wrap_with_autocast"
ENTER, LEAVE = "_vmap_increment_nesting", "_vmap_decrement_nesting"
PREPARE = "lazy_load_decompositions"


def target_name(node: Any) -> str:
    return getattr(node.target, "__name__", str(node.target))


def inlined_region(node: Any, path: str, source: str) -> Optional[tuple]:
    """(graph module, its arguments, "no_grad" or "grad" or "same") of a region to be walked in place; None for any other node."""
    name = target_name(node)
    if name == NO_GRAD:
        enabled, inner, *arguments = node.args
        return _module_of(inner), arguments, "grad" if enabled else "no_grad"
    if name == AUTOCAST:
        _, _, enabled, _, inner, *arguments = node.args
        if enabled:
            refuse("runs under torch.autocast, expected float32", path, source)
        return _module_of(inner), arguments, "same"
    return None


def _module_of(node: Any) -> Any:
    return node.graph.owning_module.get_submodule(node.target)


def vectorised_part(nodes: list, first: int) -> list:
    """The nodes from `first` on that belong to one outermost call of torch.vmap; empty if none begins there."""
    if target_name(nodes[first]) not in (ENTER, PREPARE):
        return []
    depth = 0
    for last in range(first, len(nodes)):
        name = target_name(nodes[last])
        depth += {ENTER: 1, LEAVE: -1}.get(name, 0)
        if depth == 0 and name == LEAVE:
            return nodes[first : last + 1]
    return []


def trace_again(part: list, module: Any, example: Any) -> tuple:
    """A vectorised part as a graph of plain operations: (graph module, nodes that it reads, nodes that it stands for).

    The graph takes `example`, a fake tensor whose first dimension is n, and then the tensors read; it returns a list.
    """
    inside = set(part)
    read = [one for one in dict.fromkeys(one for node in part for one in node.all_input_nodes) if one not in inside]
    read = [one for one in read if one.op != "get_attr"]
    made = [node for node in part if isinstance(node.meta.get("val"), torch.Tensor) and any(user not in inside for user in node.users)]
    tensors = [one for one in read if isinstance(one.meta["val"], torch.Tensor)]
    run = _Part(part, module, read, made)
    fake = [example, *[one.meta["val"] for one in tensors]]
    with example.fake_mode:
        traced = make_fx(run)(*fake)
    return traced, tensors, made


class _Part:
    """Runs the nodes of a part on other values for what they read."""

    def __init__(self, part: list, module: Any, read: list, made: list):
        self.part, self.module, self.read, self.made = part, module, read, made

    def __call__(self, example: torch.Tensor, *tensors: torch.Tensor) -> list:
        values: dict = {}
        left = iter(tensors)
        for one in self.read:
            value = one.meta["val"]
            values[one] = next(left) if isinstance(value, torch.Tensor) else evaluate(polynomial(value), example.shape[0])
        for node in self.part:
            values[node] = self._run(node, values)
        return [values[node] for node in self.made]

    def _run(self, node: Any, values: dict) -> Any:
        if node.op == "get_attr":
            return operator.attrgetter(node.target)(self.module)
        load = lambda one: values[one] if one in values else operator.attrgetter(one.target)(self.module)  # noqa: E731
        return node.target(*torch.fx.map_arg(node.args, load), **torch.fx.map_arg(node.kwargs, load))
