"""The masks that training draws: each by a key, so that any plan, and anyone, draws the same."""

from typing import Any

import torch

STRIDE = 0x9E3779B97F4A7C15
WORD = 2**64 - 1


def keyed_mask(seed: int, step: int, layer: int, draw: int, micro_batch: int, shape: Any, rate: float) -> torch.Tensor:
    """The mask by which dropout multiplies in training: 0 with probability `rate`, else 1 / (1 - rate).

    layer: position in the model file; draw: position among the layer's random draws; shape: that of the whole micro-batch.
    """
    generator = torch.Generator().manual_seed(_mix_key(seed, step, layer | draw << 32, micro_batch))
    return torch.empty(tuple(shape)).bernoulli_(1 - rate, generator=generator).div_(1 - rate)


def _mix(x: int) -> int:
    """The mixing of SplitMix64 (Steele, Lea, Flood 2014)."""
    x = (x + STRIDE) & WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def _mix_key(a: int, b: int, c: int, d: int) -> int:
    mixed = _mix(a & WORD)
    for part in (b, c, d):
        mixed = _mix((mixed + part) & WORD)
    return mixed
