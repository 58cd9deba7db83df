"""The graph of a model file as JSON (docs/model-file.md): layers, edges, loss, and the names of all tensors."""

from dataclasses import dataclass, field
from typing import Any

import torch

from .encoding import dtype_word, encode_nodes, schemas_of
from .layers import Layer, Layers, batch_of, name_of_read
from .mean_loss import counted_value, ignored_label
from .program import COUNTER, Program
from .refusals import refuse
from .tensor_file import WORDS

FORMAT = "frazil.model_file"
VERSION = 1
MEAN = "running_mean"


@dataclass
class ModelText:
    """graph: without the witness; tensors: parameters, buffers and constants by their names in the file."""

    graph: dict
    tensors: dict = field(default_factory=dict)


def write_model_text(name: str, program: Program, layers: Layers, loss: Program, kept: dict, trainable: Any) -> ModelText:
    """kept: the tensors of parameters, buffers and constants by Value; trainable(name): whether a parameter is to be trained."""
    text = ModelText({"format": FORMAT, "version": VERSION, "name": name, "torch": torch.__version__.partition("+")[0]})
    constants = _kept(layers, "constant") + loss.constants
    buffers = list(dict.fromkeys(value for layer in layers.layers for value in _statistics(layer, kept)))
    _name_tensors(constants, kept, text)
    _name_tensors(buffers, kept, text)
    parameters, places = _list_parameters(layers, kept, trainable, text)
    everything = [node for layer in layers.layers for node in [*layer.nodes, *layer.evaluation]] + loss.nodes
    text.graph.update(
        blocks=layers.blocks,
        schemas=dict(sorted(schemas_of(everything).items())),
        inputs=[{"name": value.tensor or f"input{i}", **_type(value)} for i, value in enumerate(program.inputs)],
        labels=_type(loss.inputs[-1]),
        parameters=parameters,
        constants=[{"tensor": value.tensor} for value in constants],
        buffers=[{"name": value.tensor, "tensor": value.tensor} for value in buffers],
        layers=[_layer(index, layer, places, kept) for index, layer in enumerate(layers.layers)],
        edges=[_edge(edge) for edge in layers.edges],
        loss=_loss(loss),
    )
    return text


def _kept(layers: Layers, kind: str) -> list:
    return list(dict.fromkeys(value for layer in layers.layers for value in layer.kept(kind)))


def _statistics(layer: Layer, kept: dict) -> list:
    """The running means and variances that the layer keeps, and the counters of their modules, which no operation reads."""
    counters = {value.tensor: value for value in kept if value.kind == "buffer" and value.tensor.endswith(COUNTER)}
    read = layer.kept("buffer")
    beside = [value.tensor.removesuffix(MEAN) + COUNTER for value in read if value.tensor.endswith(MEAN)]
    return read + [counters[name] for name in beside if name in counters]


def _name_tensors(values: list, kept: dict, text: ModelText) -> None:
    for position, value in enumerate(values):
        value.position = position
        value.tensor = value.tensor or f"frazil.constant.{position}"
        _check_type(value, f"the {value.kind} {value.tensor}")
        text.tensors[value.tensor] = kept[value].contiguous()


def _list_parameters(layers: Layers, kept: Any, trainable: Any, text: ModelText) -> tuple:
    """The entries of all layers, and by (index of a layer, value) the position of its entry."""
    entries: list = []
    places: dict = {}
    uses = [value for layer in layers.layers for value in layer.kept("parameter")]
    for index, layer in enumerate(layers.layers):
        for value in layer.kept("parameter"):
            places[index, value] = len(entries)
            entry = {"name": value.tensor, "tensor": value.tensor, "shape": list(value.shape), "trainable": trainable(value.tensor)}
            entries.append({**entry, "tied": value.tensor if uses.count(value) > 1 else ""})
            text.tensors[value.tensor] = kept[value].contiguous()
    return entries, places


def _check_type(value: Any, what: str) -> None:
    if value.dtype not in WORDS:
        refuse(f"{what} is {dtype_word(value.dtype)}, which a model file cannot hold")


def _type(value: Any) -> dict:
    _check_type(value, "a tensor that is handed from layer to layer")
    return {"dtype": dtype_word(value.dtype), "shape": list(value.shape)}


def _layer(index: int, layer: Layer, places: dict, kept: dict) -> dict:
    def name_of(node: Any, place: int, value: Any) -> str:
        if value.kind == "parameter":
            return f"p{places[index, value]}"
        return name_of_read(layer, node, place, value)

    encoded = {
        "name": layer.name,
        "block": layer.block,
        "parameters": [f"p{places[index, value]}" for value in layer.kept("parameter")],
        "buffers": [value.name for value in _statistics(layer, kept)],
        "constants": [value.name for value in layer.kept("constant")],
        "inputs": [name for _, name in layer.inputs],
        "batch": batch_of(layer),
        "outputs": [value.name for value, _ in layer.outputs],
        "output_types": [_type(value) for value, _ in layer.outputs],
        "mixes_samples": layer.mixes_samples,
        "nodes": encode_nodes(layer.nodes, name_of),
    }
    if layer.mixes_samples and not layer.mixes_in_evaluation and not layer.evaluation:
        encoded["mixes_in_evaluation"] = False
    if layer.evaluation:
        encoded["evaluation"] = encode_nodes(layer.evaluation, name_of)
    return encoded


def _edge(edge: Any) -> dict:
    kind = "gradient" if edge.is_gradient else "detached"
    return {"from": edge.source, "to": edge.target, "kind": kind, "outputs": edge.outputs}


def _loss(loss: Program) -> dict:
    """The loss as nodes over the outputs of the last layer, "o0", "o1", ..., and "labels"."""
    names = {value: f"o{index}" for index, value in enumerate(loss.inputs[:-1])}
    names[loss.inputs[-1]] = "labels"
    for position, value in enumerate(value for node in loss.nodes for value in node.makes()):
        value.position = position
    (out,) = loss.outputs
    batch = loss.inputs.index(next(value for value in loss.inputs if "n" in value.shape))
    return {
        "kind": "graph",
        "inputs": list(names.values()),
        "batch": [batch, loss.inputs[batch].shape.index("n")],
        "constants": [value.name for value in loss.constants],
        "nodes": encode_nodes(loss.nodes, lambda _node, _place, value: names.get(value, value.name)),
        "out": names.get(out, out.name),
        **_ignored(loss, names),
    }


def _ignored(loss: Program, names: dict) -> dict:
    """The label that the mean leaves out, and where it is looked for if not in the labels themselves."""
    value = counted_value(loss)
    elsewhere = {} if value is None or value is loss.inputs[-1] else {"counted": names.get(value, value.name)}
    return {"ignore_index": ignored_label(loss), **elsewhere}
