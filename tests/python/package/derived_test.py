#!/usr/bin/env python3
"""A network that is derived from a supernet: the operations that are most probable, and their weights, which a run goes on with."""

import json
import os
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

import frazil
from support import main, run_frazil

SHAPE = {"image": 4, "stem": 4, "widths": [4, 6], "cells": [2, 1], "strides": [1, 2], "head": 8, "classes": 3}
SUPERNET = {"kind": "supernet", **SHAPE, "architecture_every": 2}
OPERATIONS = ("k3e3", "k3e6", "k5e3", "k5e6", "k7e3", "k7e6")
RUN = {
    "format": "frazil.run", "version": 1, "model": SUPERNET, "epochs": 2, "batch_size": 16, "micro_batch_size": 8,
    "data": {"kind": "synthetic", "train_samples": 64, "test_samples": 32}, "optimizer": {"learning_rate": 0.01},
}  # fmt: skip


class WithRun(unittest.TestCase):
    """A folder with `run.json`, and `supernet.safetensors`, of which a cell's weights are a number for each operation."""

    def setUp(self):
        scratch = TemporaryDirectory(prefix="derived-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.write("run.json", RUN)
        self.tensors = {"stem.weight": [1.5], "head.norm.running_mean": [2.5], "classifier.bias": [3.5]}
        architecture = {"stage1.0": [0, 0, 1, -1, 1, 0, 0], "stage1.1": [0, 0, 0, 0, 0, 0, 2.0], "stage2.0": [0, 0, 0, 0, 0, 9.0]}
        for cell, numbers in architecture.items():
            self.tensors[f"{cell}.architecture"] = [float(number) for number in numbers]
            for place, operation in enumerate(OPERATIONS):
                self.tensors[f"{cell}.{operation}.project.weight"] = [float(place)]
                self.tensors[f"{cell}.{operation}.expand.norm.num_batches_tracked"] = 10 + place
        self.weights = self.folder / "supernet.safetensors"
        frazil.write_tensors(self.weights, self.tensors)

    def write(self, name, content):
        (self.folder / name).write_text(json.dumps(content))
        return self.folder / name

    def derive(self, **changed):
        given = {"weights": self.weights, "run": self.folder / "run.json", "folder": self.folder / "out", **changed}
        Path(given["folder"]).mkdir(exist_ok=True)
        return frazil.derive_network(**given)


class Derived(WithRun):
    def test_network_has_the_most_probable_operations_the_first_of_equals(self):
        model = self.derive()
        self.assertEqual(model, {"kind": "mobilenet", **SHAPE, "operations": [["k5e3", "zero"], ["k7e6"]]})
        self.assertEqual(json.loads((self.folder / "out/model.json").read_text()), model)

    def test_weights_are_those_of_the_operations_under_the_names_of_the_network(self):
        self.derive()
        found = {name: tensor.tolist() for name, tensor in frazil.read_tensors(self.folder / "out/weights.safetensors").items()}
        expected = {
            "stem.weight": [1.5], "head.norm.running_mean": [2.5], "classifier.bias": [3.5],
            "stage1.0.project.weight": [2.0], "stage1.0.expand.norm.num_batches_tracked": 12,
            "stage2.0.project.weight": [5.0], "stage2.0.expand.norm.num_batches_tracked": 15,
        }  # fmt: skip
        self.assertEqual(found, expected)

    def test_run_goes_on_from_them_without_the_masks_of_a_distillation(self):
        freeze = {"policy": {"kind": "static", "mask": "011"}}
        self.write("run.json", {**RUN, "freeze": freeze})
        model = self.derive(retrain=self.folder / "again.json")
        again = json.loads((self.folder / "again.json").read_text())
        self.assertEqual(again, {**RUN, "freeze": freeze, "model": model, "init_from": "out/weights.safetensors"})
        distillation = {"kind": "distillation", "teacher": {"kind": "mobilenet"}, "teacher_weights": "t", "student": SUPERNET}
        self.write("run.json", {**RUN, "freeze": freeze, "model": distillation})
        self.assertEqual(self.derive(retrain=self.folder / "again.json"), model)
        self.assertNotIn("freeze", json.loads((self.folder / "again.json").read_text()))

    def test_run_goes_on_without_groups_of_architecture_parameters(self):
        group = {"match": "stage?.*.weight", "weight_decay": 0.5}
        groups = [{"match": "*.architecture", "weight_decay": 0}, group]
        self.write("run.json", {**RUN, "optimizer": {**RUN["optimizer"], "groups": groups}})
        self.derive(retrain=self.folder / "again.json")
        again = json.loads((self.folder / "again.json").read_text())
        self.assertEqual(again["optimizer"], {**RUN["optimizer"], "groups": [group]})

    def refuse(self, told, **changed):
        before = sorted(self.folder.rglob("*"))
        with self.assertRaises(frazil.FrazilError) as caught:
            self.derive(**changed)
        self.assertEqual(caught.exception.code, 2)
        self.assertRegex(str(caught.exception), f"^[^\n]*: found [^\n]*{told}[^\n]*, expected [^\n]+$")
        self.assertEqual([path for path in sorted(self.folder.rglob("*")) if path not in before and path.name != "out"], [])

    def test_is_refused_where_files_do_not_belong_together(self):
        self.refuse("no such file", run=self.folder / "none.json")
        self.refuse("a run that trains another network", run=self.write("vgg.json", {**RUN, "model": {"kind": "vgg"}}))
        self.refuse(r"stages of \[2, 1\] cells", run=self.write("more.json", {**RUN, "model": {**SUPERNET, "cells": [2, 2]}}))
        self.refuse("a configuration in another folder", retrain=self.folder / "out/again.json")
        self.refuse("read, too", folder=self.folder, weights=self.weights.rename(self.folder / "weights.safetensors"))
        for lost, told in (("stage1.0.architecture", "no architecture of cell stage1.0"), ("stage2.0.k7e6.project.weight", "no weights of k7e6")):
            kept = {name: value for name, value in self.tensors.items() if name != lost}
            frazil.write_tensors(self.folder / "lost.safetensors", kept)
            self.refuse(told, weights=self.folder / "lost.safetensors")
        frazil.write_tensors(self.folder / "none.safetensors", {"stem.weight": [1.5]})
        self.refuse("no architecture parameters", weights=self.folder / "none.safetensors")


@unittest.skipUnless((Path(os.environ["FRAZIL_BIN"]) / "frazil-train").exists(), "no frazil-train, which takes libtorch")
class Retrained(WithRun):
    def run_verb(self, verb, run, *flags):
        inputs = ["--run", self.folder / run, "--quiet"]
        code, answer, told = run_frazil(verb, *inputs, *flags)
        self.assertEqual(code, 0, told)
        return answer

    def train(self, run, out):
        measured = (self.folder / f"{out}-model.json", self.folder / f"{out}-cluster.json")
        self.run_verb("profile", run, "--devices", 2, "--rounds", 1, "--steps", 2, "--out", measured[0], "--cluster-out", measured[1])
        return self.run_verb("train", run, "--profile", measured[0], "--cluster", measured[1], "--out", self.folder / out)

    def search(self, **changed):
        """Trains a supernet, and writes the run that goes on with what it has found."""
        groups = [{"match": "*.architecture", "weight_decay": 0, "learning_rate_scale": 3}]
        self.write("run.json", {**RUN, "model": {**SUPERNET, **changed}, "optimizer": {**RUN["optimizer"], "groups": groups}})
        found = self.train("run.json", "searched")
        self.derive(weights=self.folder / "searched", retrain=self.folder / "again.json")
        return found, json.loads((self.folder / "again.json").read_text())

    # Without norms nothing moves at a learning rate of nothing.
    def test_network_computes_what_the_supernet_does_in_evaluation(self):
        searched, again = self.search(batch_norm=False)
        still = {"groups": [{"match": "*", "weight_decay": 0, "learning_rate_scale": 0}]}
        self.write("still.json", {**again, "optimizer": still, "epochs": 1})
        answer = self.train("still.json", "still")
        self.assertEqual((answer["loss"], answer["accuracy"]), (searched["loss"], searched["accuracy"]))

    def test_network_is_trained_on(self):
        _, again = self.search()
        self.assertEqual(list(map(len, again["model"]["operations"])), SHAPE["cells"])
        self.assertEqual(sum(phase["steps"] for phase in self.train("again.json", "again")["phases"]), 8)


if __name__ == "__main__":
    main()
