"""Ranges as layers: what each makes again by itself, reads from others and hands out, and over which edges."""

from dataclasses import dataclass, field
from typing import Any

import torch

from .program import Node, Program, Value
from .ranges import Range, closure
from .refusals import refuse


@dataclass(eq=False)
class Layer:
    """nodes: in program order, with those repeated that depend on inputs and constants alone.

    inputs, outputs: (value, name) pairs in order. A value that several layers read is an output of its own for each reading node of all
    but the last of them, the last reader first, so that gradients are added in the order in which autograd adds them.
    aliases: by node and place among its reads, the name under which it reads a value, where that is not the value's own.
    """

    name: str
    block: int
    nodes: list
    outputs: list = field(default_factory=list)
    inputs: list = field(default_factory=list)
    aliases: dict = field(default_factory=dict)
    mixes_samples: bool = False  # in training; note_mixing (mixing.py) sets it and the next
    mixes_in_evaluation: bool = False  # if the nodes are those of training but for their flags
    evaluation: list = field(default_factory=list)  # the nodes in evaluation mode, where they are others

    def kept(self, kind: str) -> list:
        """The parameters, buffers or constants that the nodes read."""
        nodes = [*self.nodes, *self.evaluation]
        return list(dict.fromkeys(value for node in nodes for value in node.reads() if value.kind == kind))


@dataclass(eq=False)
class Edge:
    source: int
    target: int
    is_gradient: bool
    outputs: list


@dataclass
class Layers:
    blocks: list
    layers: list
    edges: list
    outputs: list  # values: what the last layer puts out for the loss


def make_layers(program: Program, ranges: list, outputs: list) -> Layers:
    """The layers of these ranges; `outputs`: what the loss reads."""
    last = ranges[-1]
    outputs = [_handed_on(value, last) for value in outputs]
    blocks, layers = _name_layers(ranges)
    _add_passive(program, ranges, layers, outputs)
    made_by = {node: index for index, one in enumerate(ranges) for node in one.nodes}
    crossings = _find_crossings(layers, made_by)
    edges = [edge for value, readers in crossings.items() for edge in _cross(value, readers, layers, made_by)]
    layers[-1].outputs = [(value, "") for value in outputs]
    _number(layers)
    edges = _join_edges(edges)
    _connect(program, layers, edges)
    return Layers(blocks, layers, edges, outputs)


def _handed_on(value: Value, last: Range) -> Value:
    """The value, or a copy of it that the last layer makes of what another one made."""
    if value.node and (value.node in last.nodes or not value.is_active):
        return value
    node = Node(torch.ops.aten.alias.default, [value], {}, [], path="", source="", is_active=True)
    node.outs = [Value("node", value.dtype, value.shape, is_active=True, carries=value.carries, node=node)]
    last.nodes.append(node)
    return node.outs[0]


def _name_layers(ranges: list) -> tuple:
    """Names of blocks, and layers without edges. Blocks bear the paths of their modules; what lies around them that of its modules."""
    blocks: list = []
    layers: list = []
    numbers: list = []
    used: dict = {}
    for one in ranges:
        if not numbers or numbers[-1] != one.number:
            numbers.append(one.number)
            together = [node for other in ranges if other.number == one.number for node in other.nodes]
            blocks.append(_unique(one.block or _common_path(together) or _around(one, ranges), used, "blocks"))
        alone = [other for other in ranges if other.number == one.number]
        name = blocks[-1] if len(alone) == 1 else one.unit or _common_path(one.nodes) or blocks[-1]
        layers.append(Layer(_unique(name, used, "layers"), len(blocks) - 1, []))
    return blocks, layers


def _common_path(nodes: list) -> str:
    """The path in which all nodes lie that read parameters."""
    paths = [node.path.split(".") for node in nodes if any(value.kind == "parameter" for value in node.reads())]
    shared: list = []
    for parts in zip(*paths):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return ".".join(shared)


def _around(one: Range, ranges: list) -> str:
    """The name of a block that is no module: where it stands."""
    return "before" if one is ranges[0] else "after" if one.number == ranges[-1].number else "between"


def _unique(name: str, used: dict, kind: str) -> str:
    count = used[kind, name] = used.get((kind, name), 0) + 1
    return name if count == 1 else f"{name}#{count}"


def _add_passive(program: Program, ranges: list, layers: list, outputs: list) -> None:
    """Gives each layer its nodes, and those again that make what they read of inputs and constants alone."""
    order = {node: index for index, node in enumerate(program.nodes)}
    for one, layer in zip(ranges, layers):
        makes = [value.node for value in outputs if value.node] if one is ranges[-1] else []
        read = [value.node for node in one.nodes for value in node.reads() if value.node] + [w for node in one.nodes for w in node.after]
        passive = closure([*makes, *read], takes=lambda node: not node.is_active)
        for node in passive:
            if any(value.is_active for value in node.reads()):
                refuse("reads memory that is changed in place later", node.path, node.source)
        active = set(one.nodes)
        layer.nodes = sorted(passive | active, key=lambda node: order.get(node, len(order)))


def _find_crossings(layers: list, made_by: dict) -> dict:
    """By value that is made, or handed in, elsewhere than where it is read: [(layer, node, place among its reads)], in program order."""
    crossings: dict = {}
    for index, layer in enumerate(layers):
        for node in layer.nodes:
            for place, value in enumerate(node.reads()):
                is_outer = value.kind == "input" and index > 0
                is_other = value.kind == "node" and value.is_active and made_by[value.node] != index
                if is_outer or is_other:
                    crossings.setdefault(value, []).append((index, node, place))
    return crossings


def _cross(value: Value, readers: list, layers: list, made_by: dict) -> list:
    """Adds the outputs that carry a value to its readers, and returns an edge for each."""
    source = made_by[value.node] if value.node else 0
    outputs = layers[source].outputs
    last = readers[-1][0]
    outputs.append((value, ""))
    edges = [Edge(source, last, value.carries, [(len(outputs) - 1)])]
    if not value.carries:
        others = sorted({index for index, _, _ in readers} - {last})
        return edges + [Edge(source, index, False, [len(outputs) - 1]) for index in others]
    count = 0
    for index, node, place in _last_first([reader for reader in readers if reader[0] != last]):
        count += 1
        outputs.append((value, f"#{count}"))
        layers[index].aliases[node, place] = f"#{count}"
        edges.append(Edge(source, index, True, [len(outputs) - 1]))
    return edges


def _last_first(readers: list) -> list:
    """The readers from the last node to the first; the places of one node in their order, as its backward hands gradients on."""
    nodes = list(dict.fromkeys((index, node) for index, node, _ in readers))
    return [(index, node, place) for index, node in reversed(nodes) for i, one, place in readers if one is node and i == index]


def _number(layers: list) -> None:
    """Numbers the values of nodes in program order, and gives outputs their names."""
    nodes = list(dict.fromkeys(node for layer in layers for node in layer.nodes))
    for position, value in enumerate(value for node in nodes for value in node.makes()):
        value.position = position
    for layer in layers:
        layer.outputs = [(value, value.name + mark) for value, mark in layer.outputs]


def _join_edges(edges: list) -> list:
    """One edge for each pair of layers and kind, sorted, gradients before the others."""
    joined: dict = {}
    for edge in edges:
        key = (edge.source, edge.target, not edge.is_gradient)
        joined.setdefault(key, Edge(edge.source, edge.target, edge.is_gradient, [])).outputs.extend(edge.outputs)
    for edge in joined.values():
        edge.outputs.sort()
    return [joined[key] for key in sorted(joined)]


def _connect(program: Program, layers: list, edges: list) -> None:
    """Gives each layer its inputs; one that sees no size n gets the model's first input too."""
    layers[0].inputs = [(value, value.name) for value in program.inputs]
    for index, layer in enumerate(layers[1:], start=1):
        layer.inputs = _inputs_of(index, layers, edges)
        if any("n" in value.shape for value, _ in layer.inputs):
            continue
        first = program.inputs[0]
        if (first, first.name) not in layers[0].outputs:
            layers[0].outputs.append((first, first.name))
        edges[:] = _join_edges([*edges, Edge(0, index, False, [layers[0].outputs.index((first, first.name))])])
        layer.inputs = _inputs_of(index, layers, edges)


def _inputs_of(index: int, layers: list, edges: list) -> list:
    return [layers[edge.source].outputs[output] for edge in edges if edge.target == index for output in edge.outputs]


def batch_of(layer: Layer) -> list:
    """[position of an input, its dimension] whose size is n."""
    for position, (value, _) in enumerate(layer.inputs):
        if "n" in value.shape:
            return [position, value.shape.index("n")]
    raise AssertionError("every layer reads something with a size of n")


def name_of_read(layer: Layer, node: Any, place: int, value: Value) -> str:
    return value.name + layer.aliases.get((node, place), "")
