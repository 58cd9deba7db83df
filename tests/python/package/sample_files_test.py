#!/usr/bin/env python3
"""Files of samples as one table: any rows, over the borders of files, and one sentence where files do not fit together."""

import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

import frazil
from frazil.sample_files import SampleFiles
from support import main


class Table(unittest.TestCase):
    def setUp(self):
        scratch = TemporaryDirectory(prefix="samples-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def write(self, name, tensors, metadata=None):
        frazil.write_tensors(self.folder / name, tensors, metadata)
        return self.folder / name

    def refuse(self, told, data):
        with self.assertRaises(frazil.FrazilError) as caught:
            SampleFiles(data)
        self.assertRegex(str(caught.exception), told)

    def test_gives_any_rows_of_several_files(self):
        samples = [([at, at / 2], at * 10) for at in range(10)]
        data = frazil.export_data(samples, self.folder / "a.safetensors", inputs=["pair"], shard_bytes=3 * 16)
        table = SampleFiles(data)
        self.assertEqual((table.count, table.inputs, len(data.files)), (10, ["pair"], 4))
        for first, last in ((0, 10), (2, 4), (0, 3), (8, 10), (5, 5)):
            found = table.take(first, last)
            self.assertEqual(found["pair"].shape, (last - first, 2))
            self.assertEqual(found["pair"].tolist(), [list(pair) for pair, _ in samples[first:last]])
            self.assertEqual(found["labels"].tolist(), [label for _, label in samples[first:last]])
        self.assertEqual([table.place(at) for at in (0, 3, 9)], [data.files[0], data.files[1], data.files[3]])

    def test_knows_the_order_of_inputs_and_needs_none_of_one(self):
        tensors = {"a": [1, 2], "b": [3, 4], "labels": [0, 1]}
        self.assertEqual(SampleFiles(self.write("told", tensors, {"inputs": "b,a"})).inputs, ["b", "a"])
        self.assertEqual(SampleFiles(self.write("alone", {"a": [1, 2]})).inputs, ["a"])
        self.refuse("found 2 inputs without an order, expected one input, or metadata", self.write("untold", tensors))
        self.refuse("found no tensor c, which its metadata names as an input", self.write("wrong", tensors, {"inputs": "a,c"}))

    def test_refuses_files_that_do_not_fit_together(self):
        first = self.write("first", {"a": [1, 2], "labels": [0, 1]})
        self.refuse("found no file of samples", [])
        self.refuse("odd: found tensors of 2 samples .a., 3 samples .labels., expected equally many", self.write("odd", {"a": [1, 2], "labels": [0, 1, 2]}))
        self.refuse("bare: found no tensor labels, expected a, labels, as in .*first", [first, self.write("bare", {"a": [1]})])
        self.refuse(
            r"real: found F32 of shape \[\] as a, expected I64 of shape \[\], as in", [first, self.write("real", {"a": [1.5], "labels": [1]})]
        )


if __name__ == "__main__":
    main()
