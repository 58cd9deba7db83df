"""Recurrent layers with dropout between them, which `aten::lstm` and `aten::gru` draw inside, where no key reaches: written out.

Each of the layers becomes a call of its own, and each dropout between two of them an operation, in the order in which PyTorch runs them, so
that the bits are the same.
"""

from typing import Any

import torch

from .operations import base_name
from .program import Node, Value

GATED = ("lstm", "gru")


class LayerCalls:
    """Splits one call. made(operation, arguments, shapes): adds a node and returns its outputs, Values of these shapes."""

    def __init__(self, name: str, arguments: list, made: Any):
        self.name, self.made = name, made
        self.input, state, self.weights, self.has_biases, self.layers, self.rate, self.train, self.both_ways, self.batch_first = arguments
        self.states = state if name == "lstm" else [state]
        self.directions = 2 if self.both_ways else 1

    def split(self) -> list:
        """The outputs of the whole call: that of the last layer, then the states behind all layers."""
        x = self.input
        behind: list = []
        if self.batch_first:
            x = self._transpose(x)
        for layer in range(self.layers):
            x, *states = self._call(x, layer)
            behind.append(states)
            if layer < self.layers - 1:
                (x,) = self.made(torch.ops.aten.dropout.default, [x, self.rate, self.train], [x.shape])
        if self.batch_first:
            x = self._transpose(x)
        return [x, *[self._join(list(states)) for states in zip(*behind)]]

    def _transpose(self, x: Value) -> Value:
        shape = [x.shape[1], x.shape[0], *x.shape[2:]]
        return self.made(torch.ops.aten.transpose.int, [x, 0, 1], [shape])[0]

    def _call(self, x: Value, layer: int) -> list:
        count = len(self.weights) // self.layers
        weights = self.weights[layer * count : (layer + 1) * count]
        states = [self._part(state, layer) for state in self.states]
        before = states if self.name == "lstm" else states[0]
        operation = getattr(torch.ops.aten, self.name).input
        arguments = [x, before, weights, self.has_biases, 1, 0.0, self.train, self.both_ways, False]
        width = states[0].shape[-1] * self.directions
        return self.made(operation, arguments, [[*x.shape[:-1], width], *[state.shape for state in states]])

    def _part(self, state: Value, layer: int) -> Value:
        first = layer * self.directions
        shape = [self.directions, *state.shape[1:]]
        return self.made(torch.ops.aten.slice.Tensor, [state, 0, first, first + self.directions], [shape])[0]

    def _join(self, states: list) -> Value:
        shape = [self.layers * self.directions, *states[0].shape[1:]]
        return self.made(torch.ops.aten.cat.default, [states, 0], [shape])[0]


def is_split(node: Node) -> bool:
    """Whether a call is to be split: it has several layers and dropout between them, and its samples are of one length."""
    is_gated = base_name(node.operation) in GATED and node.operation._overloadname == "input"
    return is_gated and node.arguments[4] > 1 and node.arguments[5] > 0
