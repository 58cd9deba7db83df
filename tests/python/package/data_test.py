#!/usr/bin/env python3
"""Data sets as files: every sample once and in order, in as many files as they need, within little memory."""

import contextlib
import io
import tracemalloc
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import frazil
from frazil.tensors import open_tensors
from support import main


class Numbered:
    """A data set as PyTorch has them: a length, samples by number, no iterator."""

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, at):
        return self.samples[at]


class Data(unittest.TestCase):
    def setUp(self):
        scratch = TemporaryDirectory(prefix="data-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.path = self.folder / "train.safetensors"

    def read(self, data):
        """All files one after the other, by tensor."""
        found = {}
        for path in data.files:
            for name, tensor in frazil.read_tensors(path).items():
                found.setdefault(name, []).extend(tensor.tolist())
        return found

    def refuse(self, told, *arguments, **options):
        with self.assertRaises(frazil.FrazilError) as caught:
            frazil.export_data(*arguments, **options)
        self.assertRegex(str(caught.exception), told)
        self.assertNotIn("\n", str(caught.exception))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_of_tuples_have_their_last_part_as_label(self):
        data = frazil.export_data(Numbered([([0.5, 1], [7], 2), ([1.5, 2], [8], 0)]), self.path, inputs=["image", "place"])
        self.assertEqual((data.files, data.samples), ([self.path], 2))
        self.assertEqual(data.tensors, {"image": ("F32", [2]), "place": ("I64", [1]), "labels": ("I64", [])})
        self.assertEqual(self.read(data), {"image": [[0.5, 1], [1.5, 2]], "place": [[7], [8]], "labels": [2, 0]})
        self.assertEqual(list(self.folder.iterdir()), [self.path])

    def test_of_dicts_have_labels_by_key_place_or_function(self):
        samples = [{"ids": [1, 2], "mask": [1, 0], "label": 1.5}, {"ids": [3, 4], "mask": [1, 1], "label": -2.5}]
        expected = {"ids": [[1, 2], [3, 4]], "mask": [[1, 0], [1, 1]], "labels": [1.5, -2.5]}
        for labels in (None, "label"):
            self.assertEqual(self.read(frazil.export_data(samples, self.path, labels)), expected)
        chosen = frazil.export_data(samples, self.path, labels=lambda sample: sample["mask"][1], inputs=["mask", "ids"])
        self.assertEqual(self.read(chosen)["labels"], [0, 1])
        self.assertEqual(open_tensors(self.path)[1]["inputs"], "mask,ids")
        self.assertEqual(self.read(frazil.export_data([(3, [1.5]), (4, [2.5])], self.path, labels=0)), {"input0": [[1.5], [2.5]], "labels": [3, 4]})

    def test_without_labels_have_none_and_say_so(self):
        with contextlib.redirect_stderr(io.StringIO()) as told:
            frazil.export_data([5, 6], self.path)
            frazil.export_data([(5, 6)], self.path)
        self.assertEqual(told.getvalue(), f"frazil: {self.path} has no labels: predictions can be made of it, no training\n")
        self.assertEqual(self.read(frazil.export_data([[1, 2]], self.path, labels=lambda sample: None, inputs=["a", "b"])), {"a": [1], "b": [2]})
        self.assertEqual(self.read(frazil.export_data([5, 6], self.path)), {"input0": [5, 6]})

    def test_larger_than_a_file_go_on_in_others(self):
        samples = [([at / 2, -at], at % 3) for at in range(1000)]
        data = frazil.export_data(iter(samples), self.path, shard_bytes=100 * 16)
        self.assertEqual([path.name for path in data.files], [f"train-{at:05d}-of-00010.safetensors" for at in range(1, 11)])
        self.assertEqual(sorted(data.files), sorted(self.folder.iterdir()))
        self.assertEqual({len(frazil.read_tensors(path)["labels"].tolist()) for path in data.files}, {100})
        self.assertEqual(self.read(data), {"input0": [list(one) for one, _ in samples], "labels": [label for _, label in samples]})
        alone = frazil.export_data(samples[:3], self.path, shard_bytes=1)
        self.assertEqual(len(alone.files), 3)

    def test_in_batches_are_cut_where_a_file_is_full(self):
        def pad(batch):
            return {"ids": [ids + [0] * (4 - len(ids)) for ids, _ in batch], "labels": [label for _, label in batch]}

        samples = [([at] * (at % 4 + 1), at) for at in range(23)]
        data = frazil.export_data(samples, self.path, collate=pad, batch=8, shard_bytes=5 * 40)
        self.assertEqual((len(data.files), data.samples), (5, 23))
        self.assertEqual(self.read(data), {"ids": [ids + [0] * (4 - len(ids)) for ids, _ in samples], "labels": list(range(23))})

    def test_take_the_memory_of_one_sample(self):
        sample = (frazil.Tensor("F32", (4096,), bytes(4 * 4096)), 1)
        frazil.export_data([sample], self.path)
        tracemalloc.start()
        frazil.export_data((sample for _ in range(300)), self.path, shard_bytes=1 << 20)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        self.assertLess(peak, 3 << 20)  # the files hold 4.7 MiB
        self.assertEqual(len(list(self.folder.glob("train-*"))), 5)

    def test_that_fail_leave_nothing(self):
        def broken():
            yield 1
            raise ValueError("no more")

        with self.assertRaisesRegex(ValueError, "no more"):
            frazil.export_data(broken(), self.path, shard_bytes=1)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_with_arguments_that_mean_nothing_are_refused(self):
        self.refuse(r"found shard_bytes=0, expected a byte or more$", [1], self.path, shard_bytes=0)
        self.refuse(r"found batch=0, expected a sample or more$", [1], self.path, batch=0)
        for name in ("a,b", "", 3):
            self.refuse(r"as the name of a tensor, expected a text without commas", [{name: 1}], self.path)
            self.refuse(r"as the name of a tensor, expected a text without commas", [(1, 0)], self.path, inputs=[name])

    def test_that_have_no_place_are_refused_before_a_sample_is_taken(self):
        def samples():
            raise AssertionError("a sample was taken")
            yield

        self.refuse(r"^\S+: found a folder, expected the name of a file to be written$", samples(), self.folder)
        self.refuse(r"nowhere/a: found no folder \S+/nowhere, expected one that is there$", samples(), self.folder / "nowhere/a")
        self.refuse(r"found file name too long, expected the name of a file", samples(), self.folder / ("a" * 300))
        with mock.patch("os.access", return_value=False):
            self.refuse(r"found no right to write into \S+, expected", samples(), self.path)

    def test_that_are_not_alike_are_refused(self):
        self.refuse(r"found a data set without samples, expected at least one", [], self.path)
        self.refuse(
            r"found I64 of shape \[3\] as input0 in sample 1, expected I64 of shape \[2\] as before; a collate",
            [([1, 2], 0), ([1, 2, 3], 0)],
            self.path,
        )
        self.refuse(
            r"found F32 of shape \[2\] as input0 in sample 1, expected I64 of shape \[2\] as before$", [([1, 2], 0), ([1.5, 2], 0)], self.path
        )
        self.refuse(r"found inputs a in sample 1, expected b", [{"a": 1, "b": 1}, {"a": 1}], self.path)
        self.refuse(r"found labels in sample 1, expected it in all samples or in none", [{"a": 1}, {"a": 1, "labels": 1}], self.path)
        self.refuse(r"found no labels in sample 1, expected it in all", [{"a": 1, "labels": 1}, {"a": 1}], self.path)
        self.refuse(r"found 3 inputs in sample 0, expected 2, as they are named", [(1, 2, 3, 4)], self.path, inputs=["a", "b"])
        self.refuse(r"found a sample with a in sample 0, expected one that has the label 'b'", [{"a": 1}], self.path, labels="b")
        self.refuse(r"found a sample of 1 parts in sample 0, expected one that has the label 3", [1], self.path, labels=3)
        self.refuse(r"found a in sample 0 \(found a value of type str", [{"a": "text"}], self.path)
        self.refuse(r"found input0 in sample 1 \(a number is out of range\)", [1, 2**70], self.path)
        self.refuse(
            r"samples in the batch from sample 0, expected equally many", [1, 2], self.path, collate=lambda batch: {"a": [1, 2], "labels": [1]}
        )


if __name__ == "__main__":
    main()
