#!/usr/bin/env python3
"""Predictions as files: what the module gives in evaluation, batch by batch, in the order of the samples, beside their labels."""

import unittest

from with_torch import Stock, frazil, main, torch
from torch import nn


class Words(nn.Module):
    """Two inputs, dropout that evaluation leaves out, and a choice of what is returned."""

    def __init__(self, form=lambda scores, mask: scores):
        super().__init__()
        self.table, self.drop, self.head = nn.Embedding(7, 4), nn.Dropout(0.5), nn.Linear(4, 3)
        self.form = form
        self.sizes = []

    def forward(self, words, mask):
        self.sizes.append(len(words))
        return self.form(self.head(self.drop(self.table(words) * mask[:, :, None]).sum(1)), mask)


class Predictions(Stock):
    def setUp(self):
        super().setUp()
        self.words = torch.randint(0, 7, (50, 5))
        self.mask = (torch.rand(50, 5) > 0.3).float()
        self.labels = torch.randint(0, 3, (50,))
        samples = [{"words": words, "mask": mask, "labels": label} for words, mask, label in zip(self.words, self.mask, self.labels)]
        self.data = frazil.export_data(samples, self.folder / "data.safetensors", shard_bytes=20 * 68)

    def expected(self, model):
        with torch.no_grad():
            parts = zip(self.words.split(16), self.mask.split(16))
            return torch.cat([model.head((model.table(words) * mask[:, :, None]).sum(1)) for words, mask in parts])

    def read(self, files):
        found = {}
        for path in files.files:
            for name, tensor in frazil.read_tensors(path).items():
                found.setdefault(name, []).append(tensor.torch())
        return {name: torch.cat(parts) for name, parts in found.items()}

    def refuse(self, told, *arguments, **options):
        with self.assertRaises(frazil.FrazilError) as caught:
            frazil.export_predictions(*arguments, self.path, **options)
        self.assertRegex(str(caught.exception), told)
        self.assertNotIn("\n", str(caught.exception))
        self.assertFalse([path for path in self.folder.iterdir() if path not in self.data.files])

    def test_are_those_of_evaluation_in_the_order_of_the_samples(self):
        model = Words()
        model.table.eval()
        self.assertEqual(len(self.data.files), 3)
        found = frazil.export_predictions(model, self.data, self.path, batch=16)
        self.assertEqual((found.files, found.samples), ([self.path], 50))
        self.assertEqual(found.tensors, {"output": ("F32", [3]), "labels": ("I64", [])})
        self.assertEqual(model.sizes, [16, 16, 16, 2])
        held = self.read(found)
        self.assertTrue(torch.equal(held["output"], self.expected(model)))
        self.assertTrue(torch.equal(held["labels"], self.labels))
        self.assertEqual([module.training for module in (model, model.table, model.drop)], [True, False, True])
        self.assertEqual(frazil.tensors.open_tensors(self.path)[1], {"outputs": "output"})

    def test_go_on_in_other_files_where_one_is_full(self):
        model = Words()
        parts = frazil.export_predictions(model, self.data.files, self.path, batch=16, shard_bytes=15 * 20)
        self.assertEqual((len(parts.files), parts.samples), (4, 50))
        self.assertTrue(torch.equal(self.read(parts)["output"], self.expected(model)))

    def test_have_the_names_of_what_the_module_returns(self):
        for form, names in (
            (lambda scores, mask: {"logits": scores, "none": None, "mean": scores.mean()}, ["logits"]),
            (lambda scores, mask: (scores, mask), ["output0", "output1"]),
        ):
            found = frazil.export_predictions(Words(form), self.data, self.path)
            self.assertEqual(list(found.tensors), [*names, "labels"])
        kept = frazil.export_predictions(Words(lambda scores, mask: (scores, mask)), self.data, self.path, outputs=["output1"])
        self.assertEqual(list(kept.tensors), ["output1", "labels"])
        self.assertTrue(torch.equal(self.read(kept)["output1"], self.mask))

    def test_need_no_labels(self):
        data = frazil.export_data(list(self.mask), self.folder / "bare.safetensors")
        self.assertEqual(frazil.export_predictions(nn.Linear(5, 2), data, self.path).tensors, {"output": ("F32", [2])})

    def test_never_replace_the_data_that_they_are_made_of(self):
        model = Words()
        before = self.read(self.data)
        whole = self.folder / "data.safetensors"
        linked = self.folder / "linked.safetensors"
        for path in (self.data.files[0], whole, linked):  # the parts of `whole` have the names of the data's
            linked.symlink_to(self.data.files[1])
            with self.assertRaisesRegex(frazil.FrazilError, r"found the name of a file .* that is read, too, expected another one than that of .*data-0000"):
                frazil.export_predictions(model, self.data, path, shard_bytes=17 * 20)
            linked.unlink()
        for name, tensor in self.read(self.data).items():
            self.assertTrue(torch.equal(tensor, before[name]))

    def test_that_cannot_be_made_are_refused_and_leave_nothing(self):
        self.refuse("found a dict, expected a module of PyTorch$", {}, self.data)
        self.refuse("found a batch of 0, expected at least one sample$", Words(), self.data, batch=0)
        self.refuse("nowhere.safetensors: found no such file or directory", Words(), self.folder / "nowhere.safetensors")
        self.refuse(
            r"data-00001-of-00003.safetensors: found samples 0 to 15, at which the module fails \(TypeError: .*\), expected samples that it takes$",
            nn.Linear(5, 2),
            self.data,
            batch=16,
        )
        self.refuse(
            r"found no logits with a row for each sample among what the module returns \(output\), expected output$", Words(), self.data, outputs=["logits"]
        )
        self.refuse("found no tensor with a row for each sample .* expected some$", Words(lambda scores, mask: scores.sum()), self.data)
        self.refuse("found an output that is named labels", Words(lambda scores, mask: {"labels": scores}), self.data)


if __name__ == "__main__":
    main()
