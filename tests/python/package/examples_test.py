#!/usr/bin/env python3
"""What the examples do with their data, on lines made up here: which lines count, which are drawn, and what is written."""

import ast
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

import frazil
from support import TREE, main

sys.path.insert(0, str(TREE / "examples/sentiment"))
import prepare  # noqa: E402


class Examples(unittest.TestCase):
    def test_are_read_by_python_3_10(self):
        for path in sorted((TREE / "examples").rglob("*.py")):
            ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 10))


class Sentiment(unittest.TestCase):
    def test_takes_lines_that_are_clearly_rated(self):
        with TemporaryDirectory() as name:
            path = Path(name) / "reviews.txt"
            path.write_bytes("1\t2.5\tCaf\xe9!\r\n2\t-0.4\tDull.\r\n3\t0.39\tSo so.\r\n4\t-3\tNo.\r\n".encode("latin-1"))
            self.assertEqual(prepare.read_reviews(path), [("Caf\xe9!", 1), ("Dull.", 0), ("No.", 0)])

    def test_draws_the_same_lines_every_time_and_none_twice(self):
        train, test = prepare.draw(list(range(10209)), 2000, 1500, seed=0)
        self.assertEqual((len(train), len(test), len({*train, *test})), (2000, 1500, 3500))
        self.assertEqual((train, test), prepare.draw(list(range(10209)), 2000, 1500, seed=0))
        self.assertEqual(train[:5], [547, 7932, 9132, 9914, 4695])

    def test_writes_tokens_masks_and_labels(self):
        def tokenizer(texts, truncation, max_length, padding):
            self.assertEqual((truncation, max_length, padding), (True, 32, "max_length"))
            lengths = [len(text) for text in texts]
            return {"input_ids": [[7] * n + [0] * (32 - n) for n in lengths], "attention_mask": [[1] * n + [0] * (32 - n) for n in lengths]}

        with TemporaryDirectory() as name:
            data = frazil.export_data([("Good", 1), ("Bad", 0)], Path(name) / "a.safetensors", collate=prepare.make_collate(tokenizer))
            found = frazil.read_tensors(data.files[0])
            self.assertEqual(found["labels"].tolist(), [1, 0])
            self.assertEqual([sum(row) for row in found["attention_mask"].tolist()], [4, 3])
            self.assertEqual(data.tensors, {"input_ids": ("I64", [32]), "attention_mask": ("I64", [32]), "labels": ("I64", [])})


if __name__ == "__main__":
    main()
