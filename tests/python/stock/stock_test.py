#!/usr/bin/env python3
"""The package beside stock PyTorch, safetensors and transformers: each reads what the other wrote, and trained weights get into a module."""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

TREE = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(TREE / "tests/python/package"), str(TREE / "tests/findings/support")]
os.environ.setdefault("FRAZIL", str(Path(os.environ["FRAZIL_BIN"]) / "frazil"))
import frazil  # noqa: E402
from support import main  # noqa: E402
from training import MODEL, Training  # noqa: E402

PYTHON = TREE / ".deps/torch-python/python"
try:
    import torch
except ImportError:
    if PYTHON.exists() and "FRAZIL_STOCK_PYTHON" not in os.environ:
        os.environ["FRAZIL_STOCK_PYTHON"] = "1"
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    print("skipped: found no PyTorch; tests/interop/setup_torch.sh fetches it")
    sys.exit(77)
try:
    import safetensors.torch
except ImportError:
    safetensors = None
try:
    import transformers
except ImportError:
    transformers = None


class Stock(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch.set_num_threads(1)
        scratch = tempfile.TemporaryDirectory(prefix="stock-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.path = self.folder / "some.safetensors"

    def refuse(self, told, model, path):
        before = {name: value.clone() for name, value in model.state_dict().items()}
        with self.assertRaises(frazil.FrazilError) as caught:
            frazil.load_weights(model, path)
        self.assertRegex(str(caught.exception), told)
        self.assertTrue(all(torch.equal(before[name], value) for name, value in model.state_dict().items()))


@unittest.skipUnless(safetensors, "found no safetensors; tests/interop/setup_torch.sh fetches it")
class Files(Stock):
    def some_tensors(self):
        kinds = [
            torch.float64,
            torch.float32,
            torch.float16,
            torch.bfloat16,
            torch.int64,
            torch.int32,
            torch.int16,
            torch.int8,
            torch.uint8,
            torch.bool,
        ]
        made = {str(kind): (torch.randn(3, 4) * 9).to(kind) for kind in kinds}
        return {**made, "turned": torch.randn(4, 6).t(), "one": torch.tensor(2.5), "none": torch.empty(0, 3)}

    def test_that_safetensors_wrote_are_read(self):
        given = {name: value.contiguous() for name, value in self.some_tensors().items()}
        safetensors.torch.save_file(given, self.path, {"some": "text"})
        for name, tensor in frazil.read_tensors(self.path).items():
            self.assertTrue(torch.equal(tensor.torch(), given[name]), name)
            self.assertEqual(tensor.tolist(), given[name].tolist(), name)
            if given[name].dtype != torch.bfloat16:
                self.assertEqual(tensor.numpy().tolist(), given[name].numpy().tolist())
        self.assertEqual(frazil.tensors.open_tensors(self.path)[1], {"some": "text"})

    def test_that_we_wrote_are_read_by_safetensors(self):
        given = self.some_tensors()
        frazil.write_tensors(self.path, {**given, "array": given["turned"].numpy()})
        found = safetensors.torch.load_file(self.path)
        self.assertTrue(torch.equal(found.pop("array"), given["turned"]))
        self.assertEqual(set(found), set(given))
        self.assertTrue(all(torch.equal(found[name], value) and found[name].dtype == value.dtype for name, value in given.items()))

    def test_of_data_sets_are_what_a_loader_gives(self):
        class Images(torch.utils.data.Dataset):
            def __len__(self):
                return 100

            def __getitem__(self, at):
                return torch.full((3, 4), at / 7, dtype=torch.float64), torch.tensor([at, at], dtype=torch.uint8), at % 10

        def collate(batch):
            images, places, labels = torch.utils.data.default_collate(batch)
            return {"images": images, "places": places, "labels": labels}

        images, places, labels = next(iter(torch.utils.data.DataLoader(Images(), batch_size=100)))
        tuples = frazil.export_data(Images(), self.folder / "a.safetensors", inputs=["images", "places"], shard_bytes=1000)
        dicts = frazil.export_data(Images(), self.folder / "b.safetensors", collate=collate, batch=7, shard_bytes=1000)
        self.assertEqual((len(tuples.files), tuples.tensors), (len(dicts.files), dicts.tensors))
        for data in (tuples, dicts):
            parts = [safetensors.torch.load_file(path) for path in data.files]
            self.assertTrue(torch.equal(torch.cat([part["images"] for part in parts]), images.float()))
            self.assertTrue(torch.equal(torch.cat([part["places"] for part in parts]), places.long()))
            self.assertTrue(torch.equal(torch.cat([part["labels"] for part in parts]), labels))


class Weights(Stock):
    def make_tied(self):
        model = torch.nn.Module()
        model.table, model.head, model.norm = torch.nn.Embedding(7, 4), torch.nn.Linear(4, 7, bias=False), torch.nn.BatchNorm1d(4)
        model.head.weight = model.table.weight
        return model

    def test_of_tied_parameters_need_one_name(self):
        source, target = self.make_tied(), self.make_tied()
        torch.nn.init.normal_(source.table.weight)
        source.norm.running_mean += 3
        weights = {name: value for name, value in source.state_dict().items() if name not in ("head.weight", "norm.num_batches_tracked")}
        frazil.write_tensors(self.path, weights)
        self.assertIs(frazil.load_weights(target, self.path), target)
        self.assertIs(target.head.weight, target.table.weight)
        self.assertTrue(all(torch.equal(value, target.state_dict()[name]) for name, value in source.state_dict().items()))
        self.assertTrue(target.table.weight.requires_grad and target.table.weight.grad_fn is None)
        frazil.write_tensors(self.path, {**weights, "head.weight": weights["table.weight"] + 1})
        self.refuse("found different values of head.weight and table.weight, expected equal ones: the module ties them", target, self.path)

    def test_that_do_not_match_are_refused_and_change_nothing(self):
        model = self.make_tied()
        whole = {name: value + 1 for name, value in model.state_dict().items()}
        for change, told in (
            (
                {"haed.weight": whole["table.weight"]},
                "found haed.weight, which the module does not have, expected its names; did you mean head.weight?",
            ),
            ({"norm.bias": torch.zeros(5)}, r"found shape \[5\] of norm.bias, expected \[4\], as the module has it"),
        ):
            frazil.write_tensors(self.path, {**whole, **change})
            self.refuse(told, model, self.path)
        frazil.write_tensors(self.path, {"norm.weight": whole["norm.weight"]})
        self.refuse("found no table.weight, head.weight, norm.bias and 2 more, expected all parameters and buffers", model, self.path)
        self.refuse("weights.safetensors: found no such file or directory", model, self.folder)
        with self.assertRaisesRegex(frazil.FrazilError, "found a dict, expected a module of PyTorch"):
            frazil.load_weights({}, self.path)

    @unittest.skipUnless(transformers, "found no transformers; tests/interop/setup_torch.sh fetches it")
    def test_of_a_training_get_into_the_vision_transformer(self):
        training = Training(str(self.folder))
        done = training.train("--out", "out", "--steps", "4", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        config = transformers.ViTConfig(
            image_size=MODEL["image"], num_channels=MODEL["channels"], patch_size=MODEL["patch"], hidden_size=MODEL["dim"],
            num_hidden_layers=MODEL["blocks"], num_attention_heads=MODEL["heads"], intermediate_size=4 * MODEL["dim"], num_labels=MODEL["classes"])  # fmt: skip
        model = frazil.load_weights(transformers.ViTForImageClassification(config), training.folder / "out")
        held = {name: value for name, value in model.state_dict().items()}
        trained = frazil.read_tensors(training.folder / "out/weights.safetensors")
        self.assertEqual(set(held), set(trained))
        self.assertTrue(all(torch.equal(held[name], tensor.torch()) for name, tensor in trained.items()))
        self.assertGreater(json.loads(done.stdout)["loss"], 0)
        logits = model.eval()(pixel_values=torch.randn(2, MODEL["channels"], MODEL["image"], MODEL["image"])).logits
        self.assertEqual(tuple(logits.shape), (2, MODEL["classes"]))


if __name__ == "__main__":
    main()
