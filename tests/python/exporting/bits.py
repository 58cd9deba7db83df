"""Exported models have the bits of PyTorch's eager mode: loss, outputs and every gradient, for two sizes of batch."""

import copy
import unittest

import torch
from exported import differences, exported, samples
from interpreter import tied_model


class Bits(unittest.TestCase):
    def test_of_the_witness_come_from_all_layers_as_one_graph(self):
        for name in samples():
            with self.subTest(model=name):
                self.assertEqual(differences(exported(name), "whole"), [])

    def test_of_the_witness_come_from_one_layer_after_another(self):
        for name in samples():
            with self.subTest(model=name):
                self.assertEqual(differences(exported(name), "by_layers"), [])

    def test_of_evaluation_are_those_of_the_model_in_evaluation(self):
        for name, sample in samples().items():
            with self.subTest(model=name):
                file = exported(name)
                model = copy.deepcopy(sample.model).eval()
                with torch.no_grad():
                    returned = model(*sample.inputs)
                    expected = sample.loss(returned, sample.labels)
                    loss, outputs = file.start(0).whole(list(sample.inputs), sample.labels, training=False)
                self.assertTrue(torch.equal(loss, expected), f"{float(loss)} and {float(expected)}")
                leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(returned) if isinstance(leaf, torch.Tensor)]
                for output in outputs:
                    self.assertTrue(any(torch.equal(output, leaf) for leaf in leaves))

    def test_of_a_third_size_of_batch_are_eager_mode_s_too(self):
        sample = samples()["gpt"]
        inputs, labels = sample.inputs[0].repeat(2, 1), sample.labels.repeat(2, 1)
        model = copy.deepcopy(sample.model).train()
        torch.manual_seed(7)
        expected = sample.loss(model(inputs), labels)
        expected.backward()
        run = exported("gpt").start(7)
        loss, _ = run.by_layers([inputs], labels)
        self.assertTrue(torch.equal(loss, expected))
        gradients = run.gradients()
        for name, parameter in model.named_parameters():
            self.assertTrue(torch.equal(parameter.grad, gradients[name]), name)

    def test_every_trained_parameter_has_a_gradient_in_the_witness(self):
        for name, sample in samples().items():
            with self.subTest(model=name):
                graph = exported(name).graph
                first = tied_model(sample.model)
                held = {entry["name"]: entry["trainable"] for entry in graph["parameters"]}
                self.assertLessEqual(set(held), set(first.values()))
                trained = {name for name, trains in held.items() if trains}
                for case in graph["witness"]["cases"]:
                    self.assertEqual({item["parameter"] for item in case["gradients"]}, trained)
