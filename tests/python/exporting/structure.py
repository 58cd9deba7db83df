"""What the layers of an exported model are, and what goes between them."""

import unittest

import torch
from exported import differences, export, exported, samples
from models import Mlp, Sample, classification
from refused import INPUTS, LABELS, Between
from torch import nn
from torch.nn import functional as F
from witnesses import Scaled


def layer_names(file):
    return [layer["name"] for layer in file.layers]


def edges(file, kind):
    return [(edge["from"], edge["to"], edge["outputs"]) for edge in file.graph["edges"] if edge["kind"] == kind]


class Frozen(nn.Module):
    """A model of which a part is not to be trained, and another is never read."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(5, 4), nn.Linear(4, 3)])
        self.blocks[0].weight.requires_grad_(False)
        self.unread = nn.Linear(2, 2)

    def forward(self, x):
        return self.blocks[1](self.blocks[0](x).relu())


class Repeated(nn.Module):
    """One layer in three places, and a head."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(5, 5)] * 3)
        self.head = nn.Linear(5, 3)

    def forward(self, x):
        for block in self.blocks:
            x = block(x).relu()
        return self.head(x)


class Shifted(nn.Module):
    """One block three times, each time behind a shift that is shared, too."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(5, 4)
        self.shift = nn.Parameter(torch.ones(4))
        self.blocks = nn.ModuleList([nn.Linear(4, 4)] * 3)
        self.last = nn.Linear(4, 3)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x + self.shift).relu()
        return self.last(x)


class Structure(unittest.TestCase):
    def test_blocks_are_the_children_of_the_module_list(self):
        file = exported("bert")
        self.assertEqual(file.graph["blocks"], ["before", "blocks.0", "blocks.1", "head"])
        self.assertEqual([layer["block"] for layer in file.layers], [0, 1, 2, 3])

    def test_module_paths_make_finer_layers_of_the_same_blocks(self):
        whole = samples()["bert"]
        finer = export(Sample("finer", whole.model, whole.inputs, whole.labels, whole.loss, ["blocks.0.attention", "blocks.1.attention"]))
        self.assertEqual(finer.graph["blocks"], ["before", "blocks.0", "blocks.1", "head"])
        self.assertEqual([layer["block"] for layer in finer.layers], [0, 1, 1, 1, 2, 2, 2, 3])
        self.assertIn("blocks.1.attention", layer_names(finer))
        self.assertEqual(differences(finer, "by_layers"), [])

    def test_a_tied_table_is_alone_in_each_layer_that_reads_it(self):
        file = exported("gpt")
        entries = file.graph["parameters"]
        tied = [layer["name"] for layer in file.layers if any(entries[int(p[1:])]["tied"] for p in layer["parameters"])]
        self.assertEqual(tied, ["tokens", "head"])
        for layer in file.layers:
            if layer["name"] in tied:
                self.assertEqual(len(layer["parameters"]), 1)
        self.assertEqual([entry["tensor"] for entry in entries if entry["tied"]], ["tokens.weight"] * 2)

    def test_layers_that_share_a_parameter_that_cannot_be_read_alone_are_one(self):
        self.assertEqual(layer_names(export(Sample("scaled", Scaled(), INPUTS, LABELS, classification))), ["before", "head"])

    def test_a_layer_that_is_used_again_and_again_does_not_take_the_head_along(self):
        file = export(Sample("repeated", Repeated(), INPUTS, LABELS, classification))
        self.assertEqual(layer_names(file), ["blocks.0", "head"])
        self.assertEqual([len(layer["parameters"]) for layer in file.layers], [2, 2])

    def test_with_them_those_that_share_what_stands_between_are_one(self):
        file = export(Sample("shifted", Shifted(), INPUTS, LABELS, classification))
        self.assertEqual([len(layer["parameters"]) for layer in file.layers], [2, 3, 2])
        self.assertEqual(differences(file), [])

    def test_a_mask_travels_as_the_input_that_it_is_made_of(self):
        file = exported("bert")
        self.assertEqual(edges(file, "detached"), [(0, 1, [0]), (0, 2, [0])])
        self.assertEqual(file.layers[0]["outputs"][0], "i1")
        self.assertIn("i1", file.layers[2]["inputs"])

    def test_each_reading_node_but_those_of_the_last_layer_has_an_output_of_its_own(self):
        file = exported("hf_t5") if "hf_t5" in samples() else self.skipTest("transformers is not there")
        gradient = [(edge["from"], output) for edge in file.graph["edges"] if edge["kind"] == "gradient" for output in edge["outputs"]]
        self.assertEqual(len(gradient), len(set(gradient)))
        repeated = [layer["name"] for layer in file.layers if len(set(layer["outputs"])) < len(layer["outputs"])]
        self.assertEqual(repeated, ["model.encoder.final_layer_norm"])

    def test_statistics_are_buffers_and_their_layers_mix_samples(self):
        file = exported("cnn")
        kinds = [entry["name"].rpartition(".")[2] for entry in file.graph["buffers"]]
        self.assertEqual(set(kinds), {"running_mean", "running_var", "num_batches_tracked"})
        self.assertEqual(len({kinds.count(kind) for kind in set(kinds)}), 1)
        self.assertEqual([layer["name"] for layer in file.layers if layer["mixes_samples"]], ["blocks.0", "blocks.1", "blocks.2"])
        self.assertEqual([layer["name"] for layer in file.layers if layer.get("mixes_in_evaluation") is False], ["blocks.0", "blocks.1", "blocks.2"])
        counters = [place for place, kind in enumerate(kinds) if kind == "num_batches_tracked"]
        self.assertTrue(all(file.tensors[file.graph["buffers"][place]["tensor"]].dtype is torch.int64 for place in counters))
        listed = [name for layer in file.layers for name in layer["buffers"]]
        self.assertEqual(sorted(listed), sorted(f"b{place}" for place in range(len(kinds))))

    def test_layers_in_which_samples_see_each_other_say_so(self):
        def attend(x, over_batch):
            x = x[None] if over_batch else x[:, None]
            return F.scaled_dot_product_attention(x, x, x).view(-1, 4)

        mixing = {
            "first": lambda x: x + x[:1],
            "selected": lambda x: x + x.select(0, -1),
            "attention": lambda x: x + attend(x, True),
            "products": lambda x: x + torch.bmm(torch.softmax(x @ x.T, 1)[None], x[None])[0],
            "joined": lambda x: torch.cat([x, x]).view(-1, 2, 4).sum(1),
            "put": lambda x: x.index_put([torch.tensor([0])], x[1]),
            "counted": lambda x: x / x.shape[0],
            "largest": lambda x: x - x.amax(0),
        }
        apart = {
            "relu": torch.relu,
            "heads": lambda x: x + attend(x, False),
            "products_apart": lambda x: x + torch.bmm(x[:, :, None], x[:, None]).sum(2),
            "dropped": nn.Dropout(0.5),
        }
        for name, middle in [*mixing.items(), *apart.items()]:
            with self.subTest(name):
                file = export(Sample(name, Between(middle), (torch.zeros(4, 5),), LABELS, classification))
                found = [layer["mixes_samples"] for layer in file.layers]
                self.assertEqual(found, [name in mixing, False])
                self.assertFalse(any("mixes_in_evaluation" in layer for layer in file.layers), "as in training")

    def test_evaluation_is_written_where_it_is_another_program(self):
        for name in samples():
            with self.subTest(model=name):
                layers = [layer["name"] for layer in exported(name).layers if "evaluation" in layer]
                self.assertEqual(layers, {"branching": ["blocks.0"], "switching": ["blocks.0", "blocks.1"]}.get(name, []))

    def test_draws_are_counted_in_each_layer(self):
        for layer in exported("gpt").layers:
            draws = [node["random"] for node in layer["nodes"] if "random" in node]
            self.assertEqual(draws, list(range(len(draws))))

    def test_nodes_know_their_module_and_their_line(self):
        node = exported("gpt").layers[2]["nodes"][0]
        self.assertEqual(node["path"], "blocks.0.before")
        self.assertRegex(node["source"], r"^models\.py:\d+$")

    def test_parameters_that_do_not_train_say_so_and_those_that_nothing_reads_are_left_out(self):
        generator = torch.Generator().manual_seed(0)
        inputs, labels = torch.randn(4, 5, generator=generator), torch.tensor([0, 1, 2, 0])
        file = export(Sample("frozen", Frozen(), (inputs,), labels, classification))
        trainable = {entry["name"]: entry["trainable"] for entry in file.graph["parameters"]}
        self.assertEqual(trainable, {"blocks.0.weight": False, "blocks.0.bias": True, "blocks.1.weight": True, "blocks.1.bias": True})

    def test_of_a_model_with_adapters_these_and_the_head_train(self):
        file = exported("peft_lora") if "peft_lora" in samples() else self.skipTest("peft is not there")
        trained = {entry["name"] for entry in file.graph["parameters"] if entry["trainable"]}
        self.assertEqual(trained, {name for name, one in samples()["peft_lora"].model.named_parameters() if one.requires_grad})
        self.assertEqual(len([name for name in trained if ".lora_" in name]), 8)
        self.assertEqual(len(trained), 10)
        self.assertFalse(any(file.graph["parameters"][int(p[1:])]["trainable"] for p in file.layers[0]["parameters"]))

    def test_the_model_is_left_as_it_was(self):
        model = Mlp().eval()
        state = torch.get_rng_state()
        generator = torch.Generator().manual_seed(0)
        export(Sample("left", model, (torch.randn(4, 5, generator=generator),), torch.tensor([0, 1, 2, 0]), classification))
        self.assertFalse(any(module.training for module in model.modules()))
        self.assertTrue(all(parameter.grad is None for parameter in model.parameters()))
        self.assertTrue(torch.equal(torch.get_rng_state(), state))
