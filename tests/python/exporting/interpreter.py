"""A reader of model files in Python: runs a file's nodes with torch.ops, layer by layer, as docs/model-file.md says.

It shares nothing with the exporter but the reading of safetensors, and is what exported models are compared with.
"""

import json
from collections import defaultdict

import torch
from frazil.exporting.tensor_file import read_tensors
from torch import nn


class ModelFile:
    """graph: the JSON of the file; tensors: by their names in the file; path: where it lies."""

    def __init__(self, path):
        self.path = path
        self.tensors, metadata = read_tensors(path)
        self.graph = json.loads(metadata["frazil.model"])
        self.layers = self.graph["layers"]

    def parameters(self):
        """Fresh leaves by entry of "parameters"; uses of a tied parameter are leaves of their own."""
        entries = self.graph["parameters"]
        return [self.tensors[e["tensor"]].clone().requires_grad_(e["trainable"]) for e in entries]

    def start(self, seed):
        torch.manual_seed(seed)
        return Run(self)


class Run:
    """One step of a model: forward layer by layer, then backward layer by layer."""

    def __init__(self, file):
        self.file = file
        self.leaves = file.parameters()
        self.shared = {f"p{i}": leaf for i, leaf in enumerate(self.leaves)}
        for kind, letter in (("constants", "c"), ("buffers", "b")):
            self.shared.update({f"{letter}{i}": file.tensors[e["tensor"]].clone() for i, e in enumerate(file.graph[kind])})

    def run_layer(self, layer, inputs, training=True):
        """The outputs of a layer for these inputs."""
        values = {**self.shared, **dict(zip(layer["inputs"], inputs))}
        place, dimension = layer["batch"]
        nodes = layer["nodes"] if training else layer.get("evaluation", layer["nodes"])
        written = {name for node in nodes for name in written_names(node)}
        for name in layer["inputs"]:
            if name in written:
                values[name] = values[name].clone()
        run_nodes(nodes, values, inputs[place].shape[dimension], training)
        return [values[name] for name in layer["outputs"]]

    def run_loss(self, outputs, labels, training=True):
        loss = self.file.graph["loss"]
        given = [*outputs, labels]
        place, dimension = loss["batch"]
        values = {**self.shared, **dict(zip(loss["inputs"], given))}
        run_nodes(loss["nodes"], values, given[place].shape[dimension], training)
        return values[loss["out"]]

    def whole(self, inputs, labels, training=True):
        """(loss, outputs) of all layers as one graph of autograd."""
        made = self._forward(inputs, training, cut=False)
        return self.run_loss(made[-1][1], labels, training), made[-1][1]

    def by_layers(self, inputs, labels):
        """(loss, outputs), after a backward that goes from layer to layer with gradients of outputs alone."""
        made = self._forward(inputs, training=True, cut=True)
        loss = self.run_loss(made[-1][1], labels)
        gradients = defaultdict(dict)
        for index in reversed(range(len(self.file.layers))):
            is_last = index == len(self.file.layers) - 1
            taken, outputs = made[index]
            self._backward(index, taken, [loss] if is_last else outputs, [None] if is_last else gradients[index], gradients)
        return loss.detach(), made[-1][1]

    def gradients(self):
        """By name; uses of a tied parameter are added from the last layer to the first."""
        summed = {}
        for entry, leaf in reversed(list(zip(self.file.graph["parameters"], self.leaves))):
            if leaf.grad is not None:
                before = summed.get(entry["name"])
                summed[entry["name"]] = leaf.grad if before is None else before + leaf.grad
        return summed

    def _edges_into(self, index):
        return [edge for edge in self.file.graph["edges"] if edge["to"] == index]

    def _forward(self, inputs, training, cut):
        """(inputs, outputs) by layer. cut: gradients stop at edges, and inputs of gradient edges are leaves."""
        made = []
        for index, layer in enumerate(self.file.layers):
            taken = list(inputs) if index == 0 else []
            for edge in self._edges_into(index):
                for output in edge["outputs"]:
                    passed = made[edge["from"]][1][output]
                    is_leaf = cut or edge["kind"] == "detached"
                    passed = passed.detach() if is_leaf else passed
                    taken.append(passed.requires_grad_() if cut and edge["kind"] == "gradient" else passed)
            made.append((taken, self.run_layer(layer, taken, training)))
        return made

    def _backward(self, index, taken, roots, given, gradients):
        """Runs a layer's backward from its roots and leaves the gradients of its inputs with the layers that made them."""
        if isinstance(given, dict):
            roots, given = [roots[output] for output in sorted(given)], [given[output] for output in sorted(given)]
        pairs = [(root, gradient) for root, gradient in zip(roots, given) if root.requires_grad]
        if pairs:
            torch.autograd.backward([root for root, _ in pairs], [gradient for _, gradient in pairs])
        left = iter(taken)
        for edge in self._edges_into(index):
            for output in edge["outputs"]:
                gradient = next(left).grad
                if edge["kind"] == "gradient" and gradient is not None:
                    assert output not in gradients[edge["from"]], "an output has one reading layer"
                    gradients[edge["from"]][output] = gradient


def operation_of(name):
    qualified, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, qualified.partition("::")[2]), overload or "default")


def written_names(node):
    formals = operation_of(node["op"])._schema.arguments
    return [a["v"] for f, a in zip(formals, node["args"]) if f.alias_info is not None and f.alias_info.is_write]


def run_nodes(nodes, values, n, training):
    """Runs nodes on `values`, by name, and adds what they make."""
    for node in nodes:
        operation = operation_of(node["op"])
        arguments = [argument_of(item, values, n) for item in node["args"]]
        keywords = {name: argument_of(item, values, n) for name, item in node["kwargs"].items()}
        set_flags(operation, arguments, training)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not node.get("no_grad", False)):
            made = operation(*arguments, **keywords)
        keep(node["out"], made, values)


def set_flags(operation, arguments, training):
    if training:
        return
    for place, formal in enumerate(operation._schema.arguments[: len(arguments)]):
        if formal.name in ("train", "training"):
            arguments[place] = False
        if formal.name == "dropout_p":
            arguments[place] = 0.0


def keep(names, made, values):
    if len(names) == 1 and isinstance(names[0], dict):
        names = names[0]["list"]
    for name, value in zip(names, made if isinstance(made, (list, tuple)) else [made]):
        if name is not None:
            values[name] = value


def size_of(size, n):
    if size == "n":
        return n
    if isinstance(size, int):
        return size
    parts = [size_of(part, n) for part in size[1:]]
    if size[0] == "//":
        return parts[0] // parts[1]
    total = parts[0]
    for part in parts[1:]:
        total = total + part if size[0] == "+" else total * part
    return total


def argument_of(item, values, n):
    if isinstance(item, list):
        return [argument_of(one, values, n) for one in item]
    if not isinstance(item, dict):
        return item
    ((kind, word),) = item.items()
    if kind == "v":
        return values[word]
    if kind == "size":
        return size_of(word, n)
    if kind == "float":
        return float(word)
    if kind == "device":
        return torch.device("cpu")
    return getattr(torch, word + "_format" if kind == "memory_format" else word)


def tied_model(model: nn.Module):
    """Of each parameter its first name in the model, by all of its names."""
    first = {}
    return {name: first.setdefault(id(parameter), name) for name, parameter in model.named_parameters(remove_duplicate=False)}
