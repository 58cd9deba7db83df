#!/usr/bin/env python3
"""What the examples do with their data, on lines made up here: which lines count, which are drawn, and what is written."""

import ast
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

import frazil
from support import TREE, main

sys.path.insert(0, str(TREE / "examples/sentiment"))
import prepare  # noqa: E402
import tune  # noqa: E402


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
        train, test, validation = prepare.draw(list(range(10209)), (2000, 1500, 1000), seed=0)
        self.assertEqual((len(train), len(test), len(validation), len({*train, *test, *validation})), (2000, 1500, 1000, 4500))
        self.assertEqual([train, test, []], prepare.draw(list(range(10209)), (2000, 1500, 0), seed=0))
        self.assertEqual(train[:5], [547, 7932, 9132, 9914, 4695])
        with self.assertRaisesRegex(SystemExit, "found 10 lines, expected at least 12"):
            prepare.draw(list(range(10)), (8, 4), seed=0)

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

    def test_says_what_is_missing_and_who_leaves_it(self):
        with TemporaryDirectory() as name:
            tuned = ("--run", TREE / "examples/ablation/reviews.json", "--rates", "1e-4", "--seeds", "1")
            for program, words, expected in (
                (prepare, (), f"found no {name}/model/vocab.txt, expected what fetch.py leaves"),
                (tune, (*tuned, "--epochs", "3"), f"found no {name}/profile.json, expected what frazil profile, by the command that export.py prints, leaves"),
                (tune, (*tuned, "--epochs", "x"), "argument --epochs: found x, expected numbers above 0, as 2,3"),
                (tune, (*tuned, "--epochs", "0"), "argument --epochs: found 0, expected numbers above 0, as 2,3"),
            ):
                done = subprocess.run([sys.executable, program.__file__, name, *words], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr.splitlines()[-1]), (2, f"{Path(program.__file__).name}: error: {expected}"))

    def test_is_tuned_once_for_each_setting_on_validation_lines(self):
        program = """#!{0}
import json, sys
run = json.loads(open(sys.argv[sys.argv.index("--run") + 1]).read())
print(run["epochs"], run["optimizer"]["learning_rate"], run["seed"], run["data"]["test"], *run.get("freeze", []), file=open("{1}/calls", "a"))
print(json.dumps({{"accuracy": run["epochs"] / 10, "loss": 0.5}}))
"""
        with TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "frazil").write_text(program.format(sys.executable, folder), encoding="utf-8")
            (folder / "frazil").chmod(0o755)
            (folder / "profile.json").touch()
            command = [sys.executable, tune.__file__, folder, "--run", TREE / "examples/ablation/reviews.json", "--rates", "1e-4", "--seeds", "1,2"]

            def call(*words):
                environment = {**os.environ, "FRAZIL_BIN": name}
                return subprocess.run([*command, *words], env=environment, capture_output=True, text=True, check=True).stdout

            self.assertEqual(call("--epochs", "3"), "3 epochs at 0.0001: 30.00, 30.00 %, mean 30.00\n")
            call("--epochs", "2,3")
            call("--epochs", "3", "--policy", json.dumps({"kind": "alpha", "alpha": 0.5, "start_epoch": 1}))
            calls = [f"{epochs} 0.0001 {seed} validation.safetensors" for epochs in (3, 2) for seed in (1, 2)]
            calls += [f"3 0.0001 {seed} validation.safetensors policy" for seed in (1, 2)]
            self.assertEqual((folder / "calls").read_text(encoding="utf-8").splitlines(), calls)
            rows = (folder / "tuning.csv").read_text(encoding="utf-8").splitlines()
            self.assertEqual(rows[:2], ["epochs,learning_rate,policy,seed,inputs,accuracy,loss", f"2,0.0001,,1,{rows[1].split(',')[4]},0.2000,0.5000"])
            self.assertEqual(len(rows), 7)
            self.assertEqual({path.name for path in folder.iterdir()}, {"frazil", "calls", "profile.json", "tuning.csv"})
            (folder / "validation.safetensors").write_bytes(b"other lines")
            call("--epochs", "2")
            self.assertEqual((folder / "calls").read_text(encoding="utf-8").splitlines(), [*calls, *calls[2:4]])


if __name__ == "__main__":
    main()
