#!/usr/bin/env python3
"""The package beside stock PyTorch, safetensors and transformers: each reads what the other wrote, and trained weights get into a module."""

import unittest

from with_torch import Stock, frazil, main, torch

try:
    import safetensors.torch
except ImportError:
    safetensors = None
try:
    import transformers
except ImportError:
    transformers = None


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
    def refuse(self, told, model, path):
        before = {name: value.clone() for name, value in model.state_dict().items()}
        with self.assertRaises(frazil.FrazilError) as caught:
            frazil.load_weights(model, path)
        self.assertRegex(str(caught.exception), told)
        self.assertTrue(all(torch.equal(before[name], value) for name, value in model.state_dict().items()))

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
    def test_of_a_training_get_into_transformers(self):
        sizes = {"blocks": 2, "heads": 2, "dim": 16}
        shape = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 64}
        words = {"vocabulary": 20, "tokens": 12}
        vit = transformers.ViTConfig(**shape, image_size=8, num_channels=1, patch_size=4, num_labels=5)
        gpt = transformers.GPT2Config(vocab_size=20, n_positions=12, n_embd=16, n_layer=2, n_head=2)
        bert = transformers.BertConfig(**shape, vocab_size=20, max_position_embeddings=12, type_vocab_size=2, num_labels=5)
        self.expect_trained({"kind": "vit", "image": 8, "patch": 4, "classes": 5, **sizes}, transformers.ViTForImageClassification(vit))
        decoder = self.expect_trained({"kind": "decoder", **words, **sizes}, transformers.GPT2LMHeadModel(gpt))
        self.assertIs(decoder.lm_head.weight, decoder.transformer.wte.weight)
        self.expect_trained({"kind": "encoder", "segments": 2, "classes": 5, **words, **sizes}, transformers.BertForSequenceClassification(bert))

    def expect_trained(self, choice, model):
        """Trains a model of Frazil's own for four steps and loads what it left into one of transformers."""
        data = {"kind": "synthetic", "train_samples": 64, "test_samples": 16, "seed": 3}
        run = {"format": "frazil.run", "version": 1, "model": choice, "data": data, "epochs": 1, "batch_size": 16, "micro_batch_size": 4}
        files = {"profile": self.folder / "model.json", "cluster": self.folder / "cluster.json"}
        measured = {"out": files["profile"], "cluster_out": files["cluster"], "devices": 2, "memory_limit": "1GiB", "rounds": 1, "steps": 2}
        frazil.ask("profile", run=run, quiet=True, **measured)
        out = self.folder / choice["kind"]
        frazil.ask("train", run=run, **files, out=out, quiet=True)
        if choice["kind"] == "decoder":
            with self.assertRaisesRegex(frazil.FrazilError, r"found shape \[48, 16\] of transformer.h.0.attn.c_attn.weight"):
                frazil.load_weights(model, out)
            turn_maps(out / "weights.safetensors")
        frazil.load_weights(model, out)
        trained = frazil.read_tensors(out / "weights.safetensors")
        self.assertLessEqual(set(trained), set(model.state_dict()))
        self.assertTrue(all(torch.equal(model.state_dict()[name], tensor.torch()) for name, tensor in trained.items()))
        return model


def turn_maps(path):
    """GPT-2 holds the maps inside blocks as [in, out]; a decoder's lie as [out, in]."""
    maps = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    weights = {name: tensor.torch() for name, tensor in frazil.read_tensors(path).items()}
    frazil.write_tensors(path, {name: weight.t().contiguous() if name.endswith(maps) else weight for name, weight in weights.items()})


if __name__ == "__main__":
    main()
