"""Keyed masks are those that training draws."""

import unittest

import torch
from frazil.exporting import keyed_mask

# What the executor's generator draws for seed 7, step 3, micro-batch 1 and rate 0.25, by layer and draw, as zeros and others.
RECORDED = {(0, 0): "1111110010111011", (2, 0): "0011111100111011", (2, 5): "1110010010111111"}


class Masks(unittest.TestCase):
    def test_hold_zeros_and_what_keeps_the_mean(self):
        mask = keyed_mask(1, 0, 0, 0, 0, (1000,), 0.25)
        self.assertEqual(mask.unique().tolist(), [0.0, float(torch.tensor(1.0) / torch.tensor(0.75))])
        self.assertAlmostEqual(float(mask.mean()), 1, delta=0.1)

    def test_depend_on_each_part_of_the_key(self):
        keys = [(1, 0, 0, 0, 0), (2, 0, 0, 0, 0), (1, 2, 0, 0, 0), (1, 0, 2, 0, 0), (1, 0, 0, 2, 0), (1, 0, 0, 0, 2)]
        masks = {tuple(keyed_mask(*key, (64,), 0.5).tolist()) for key in keys}
        self.assertEqual(len(masks), len(keys))

    def test_are_the_recorded_ones(self):
        for (layer, draw), recorded in RECORDED.items():
            mask = keyed_mask(7, 3, layer, draw, 1, (16,), 0.25)
            self.assertEqual("".join("1" if value else "0" for value in mask.tolist()), recorded)
