"""Frazil's masks under PyTorch's own dropout, whatever form it has."""

import torch
from frazil import keyed_mask
from torch.utils._python_dispatch import TorchDispatchMode

MICRO_BATCH = 0  # of steps that take their batch at once


def find_draws(graph):
    """(layer, draw) of every random draw of a model file, in the order in which training draws."""
    found = []
    for index, layer in enumerate(graph["layers"]):
        found += [(index, node["random"]) for node in layer["nodes"] if "random" in node]
    return found


class KeyedMasks(TorchDispatchMode):
    """Every `bernoulli_`, which all dropout on a processor draws by, gives the zeros and ones of the mask whose turn it is."""

    def __init__(self, draws, seed, step):
        super().__init__()
        self.draws, self.seed, self.step, self.taken = draws, seed, step, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is not torch.ops.aten.bernoulli_.float:
            return function(*args, **(kwargs or {}))
        noise, kept = args
        layer, draw = self.draws[self.taken]
        self.taken += 1
        mask = keyed_mask(self.seed, self.step, layer, draw, MICRO_BATCH, noise.shape, 1 - kept)
        return noise.copy_(mask != 0)
