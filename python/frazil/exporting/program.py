"""A model as a list of operations on tensors, in the order in which the model runs them.

A `Program` is what the translation of a captured graph gives (translation.py) and what is cut into layers
(ranges.py, layers.py). Sizes are polynomials in the batch size n (sizes.py).
"""

from dataclasses import dataclass, field
from typing import Any, Iterator, Optional

COUNTER = "num_batches_tracked"  # the buffer of batch_norm that nothing reads where a momentum is given

@dataclass(eq=False)
class Value:
    """A tensor of the program.

    kind: "node" (an operation makes it), "input", "parameter", "constant" or "buffer" (running statistics and their counters).
    is_active: whether it depends on a parameter, a buffer or a random draw; the others can be made again anywhere.
    carries: whether a gradient can pass through it.
    """

    kind: str
    dtype: Any
    shape: list
    position: int = 0  # among the values of its kind
    tensor: str = ""  # its name in the state dict or among the constants; empty for nodes and inputs
    is_active: bool = False
    carries: bool = False
    node: Optional["Node"] = None

    @property
    def name(self) -> str:
        return {"node": "v", "input": "i", "parameter": "p", "constant": "c", "buffer": "b"}[self.kind] + str(self.position)


@dataclass(frozen=True)
class Size:
    """A size that depends on n: an argument of an operation."""

    polynomial: Any


@dataclass(eq=False)
class Node:
    """One operation.

    arguments, keywords: numbers, text, None, torch's dtypes and the like, Value, Size, and lists of these.
    outs: a Value or None for each output; a list of these for an output that is a list.
    after: earlier nodes that change in place what this node reads, and on whose outputs it need not depend.
    """

    operation: Any  # torch._ops.OpOverload
    arguments: list
    keywords: dict
    outs: list
    no_grad: bool = False
    draws: bool = False
    path: str = ""
    source: str = ""
    after: list = field(default_factory=list)
    is_active: bool = False  # as of its outputs

    def reads(self) -> list:
        """The values among the arguments, one for each place, in order."""
        return [item for item in flatten([self.arguments, list(self.keywords.values())]) if isinstance(item, Value)]

    def makes(self) -> list:
        return [item for item in flatten(self.outs) if item is not None]


@dataclass
class Program:
    """`outputs`: what the model returns, tensor by tensor, in the order of torch's pytree."""

    inputs: list
    parameters: list
    constants: list
    buffers: list
    nodes: list
    outputs: list


def flatten(items: Any) -> Iterator[Any]:
    """The items of nested lists and tuples, from left to right."""
    for item in items:
        if isinstance(item, (list, tuple)):
            yield from flatten(item)
        else:
            yield item


def map_items(change: Any, item: Any) -> Any:
    """`item` with `change` applied to everything in it that is no list."""
    if isinstance(item, (list, tuple)):
        return [map_items(change, one) for one in item]
    return change(item)
