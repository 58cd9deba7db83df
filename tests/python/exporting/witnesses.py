"""The witness of a file finds graphs that are wrong, and says which kernels made it."""

import contextlib
import io
import os
import unittest
from unittest import mock

import torch
from exported import differences, exported, export
from frazil.exporting import ExportRefused, capture
from frazil.exporting.fingerprint import MKL, branch_of_this_process
from models import Mlp, Sample, classification
from refused import INPUTS, LABELS, Between, Doubled
from torch import nn


class Scaled(nn.Module):
    """Divides by a norm of its own parameters, through which no gradient may go."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(5, 4)
        self.last = nn.Linear(4, 3)
        self.head = nn.Linear(3, 3)

    def forward(self, x):
        with torch.no_grad():
            norm = self.first.weight.norm() + self.last.weight.norm()
        return self.head(self.last(self.first(x) / norm))


def export_function():
    """A model with a torch.autograd.Function, exported as if that could not be seen."""
    original = capture.capture
    with mock.patch("frazil.exporting.export_model.capture", lambda model, inputs: original(model, inputs, refuses_functions=False)):
        return export(Sample("bad-function", Between(Doubled.apply), INPUTS, LABELS, classification))


def export_scaled():
    return export(Sample("scaled", Scaled(), INPUTS, LABELS, classification))


class Witnesses(unittest.TestCase):
    def test_tell_that_a_backward_has_been_lost(self):
        self.assertEqual(set(differences(export_function())), {"first.weight", "first.bias"})

    def test_tell_that_no_grad_has_been_lost(self):
        file = export_scaled()
        self.assertEqual(differences(file), [])
        for layer in file.layers:
            for node in layer["nodes"]:
                node.pop("no_grad", None)
        found = set(differences(file, "whole"))
        self.assertLessEqual({"first.weight", "last.weight"}, found)
        self.assertNotIn("loss", found)

    def test_tell_that_a_constant_is_wrong(self):
        file = exported("lstm")
        file.tensors["frazil.constant.0"][1] += 0.5
        try:
            self.assertIn("loss", differences(file))
        finally:
            file.tensors["frazil.constant.0"][1] -= 0.5

    def test_name_the_kernels_with_which_this_process_was_started(self):
        mark = exported("mlp").graph["witness"]["fingerprint"]
        self.assertEqual(mark["mkl"], branch_of_this_process())
        self.assertEqual(mark["torch"], torch.__version__.partition("+")[0])
        self.assertEqual(mark["threads"], 1)

    def test_are_made_in_another_process_where_this_one_has_other_kernels(self):
        branch = "COMPATIBLE"
        with mock.patch.dict(os.environ, {MKL: branch}):
            file = export(Sample("child", Mlp(), INPUTS, LABELS, classification))
        self.assertEqual(file.graph["witness"]["fingerprint"]["mkl"], branch)
        self.assertEqual([case["n"] for case in file.graph["witness"]["cases"]], [4, 3])

    def test_are_made_in_this_process_where_the_model_cannot_be_handed_to_another(self):
        hooked = Mlp()
        hooked.register_forward_hook(lambda module, inputs, outputs: outputs * 2)
        parametrised = Mlp()
        nn.utils.parametrizations.weight_norm(parametrised.layers[0])
        attributed = Mlp()
        attributed.scale = lambda: 2
        for model, loss, advice in (
            (hooked, classification, "make the model one that pickle takes"),
            (parametrised, classification, "make the model one that pickle takes"),
            (attributed, classification, "make the model one that pickle takes"),
            (Mlp(), lambda outputs, labels: classification(outputs, labels), "define the loss by a name of its own in a module"),
        ):
            with mock.patch.dict(os.environ, {MKL: "COMPATIBLE"}), contextlib.redirect_stderr(io.StringIO()) as told:
                file = export(Sample("here", model, INPUTS, LABELS, loss))
            self.assertRegex(told.getvalue(), f"^frazil: {advice}.*, or start with MKL_CBWR=COMPATIBLE: .*\n$")
            self.assertEqual(file.graph["witness"]["fingerprint"]["mkl"], branch_of_this_process())
            self.assertEqual(differences(file), [])

    def test_that_fail_in_another_process_are_refused_as_in_this_one(self):
        model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
        told = "^the model: fails as PyTorch runs .* more than 1 value"
        for branch in (branch_of_this_process(), "COMPATIBLE"):
            with mock.patch.dict(os.environ, {MKL: branch}), self.assertRaisesRegex(ExportRefused, told):
                export(Sample("single", model, (INPUTS[0][:2],), LABELS[:2], classification))
