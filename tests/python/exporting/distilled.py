"""Blockwise distillation: the files of a teacher and a student, and what they say of blocks, suffice to train as a program of PyTorch does."""

import copy
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import frazil
import torch
from frazil.exporting import ExportRefused, export_distillation
from interpreter import ModelFile
from models import CLASSES, classification
from torch import nn
from torch.nn import functional as F

PROGRAM = Path(os.environ.get("FRAZIL_BIN", "build/bin")) / "frazil"
STEPS, RATE, BATCH = 2, 0.125, 6


class Staged(nn.Module):
    """Stages of convolutions and a head; with `separable` each convolution but the first is one by channel and one over channels."""

    def __init__(self, widths=(4, 6), convolutions=2, separable=False, channels=2):
        super().__init__()
        stages = []
        for width in widths:
            parts = []
            for _ in range(convolutions):
                parts += _convolution(channels, width, separable and (stages or parts))
                channels = width
            stages.append(nn.Sequential(*parts, nn.MaxPool2d(2, ceil_mode=True)))
        self.stages = nn.ModuleList(stages)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))

    def forward(self, images):
        for stage in self.stages:
            images = stage(images)
        return self.head(images)

    def parts(self):
        return [*((f"stages.{i}", stage) for i, stage in enumerate(self.stages)), ("head", self.head)]


def _convolution(channels, width, separable):
    if not separable:
        return [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    by_channel = [nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]
    return [*by_channel, nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]


class Unit(nn.Module):
    """A residual unit, whose activation is a function behind the sum."""

    def __init__(self, width):
        super().__init__()
        self.inner = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return F.relu(self.inner(x) + x)


class Resnet(nn.Module):
    """Layers of several units, whose parts are found by the path of a module, and a dropout before the head."""

    def __init__(self, depths=(2, 1)):
        super().__init__()
        self.stem = nn.Conv2d(2, 4, 3, padding=1)
        self.layer1 = nn.Sequential(*[Unit(4) for _ in range(depths[0])])
        self.layer2 = nn.Sequential(*[Unit(4) for _ in range(depths[1])])
        self.fc = nn.Linear(4, CLASSES)

    def forward(self, images):
        x = self.layer2(self.layer1(self.stem(images)))
        return self.fc(F.dropout(x.mean((2, 3)), 0.5, self.training))


class Skipping(nn.Module):
    """The last stage reads what the first has put out, too."""

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([nn.Linear(5, 5) for _ in range(3)])
        self.head = nn.Linear(5, CLASSES)

    def forward(self, x):
        first = self.stages[0](x).relu()
        return self.head(self.stages[2](self.stages[1](first).relu()) + first)


def chain(width=5, heads=1):
    parts = [nn.Linear(5, width), nn.Linear(width, 4), nn.Linear(4, heads * CLASSES)]
    return nn.Sequential(*parts, *([nn.Unflatten(1, (CLASSES, heads))] if heads > 1 else []))


class Distillation:
    """The oracle: each block of the student is taught alone, by what the teacher's block makes of the same input."""

    def __init__(self, teacher, student):
        self.teacher, self.student = copy.deepcopy(teacher).eval(), copy.deepcopy(student).train()

    def step(self, images):
        """(loss of each block, gradients by name), after which the student has taken a step of SGD."""
        losses, gradients, x = [], {}, images
        names = {id(parameter): name for name, parameter in self.student.named_parameters()}
        pairs = list(zip(self.teacher.parts(), self.student.parts()))
        for at, ((_, theirs), (_, ours)) in enumerate(pairs):
            with torch.no_grad():
                target = theirs(x)
            made = ours(x)
            loss = F.mse_loss(made, target) if at + 1 < len(pairs) else F.cross_entropy(made, target.softmax(1))
            parameters = list(ours.parameters())
            gradients.update(zip((names[id(one)] for one in parameters), torch.autograd.grad(loss, parameters)))
            losses.append(loss.detach())
            x = target
        descend(dict(self.student.named_parameters()), gradients)
        return losses, gradients


class FromFiles:
    """The same by the files alone: by the layers of each block as the run configuration names them."""

    def __init__(self, model, folder):
        self.networks = {role: ModelFile(folder / model[role]["path"]).start(0) for role in ("teacher", "student")}
        self.ends = [{role: self._layers_up_to(role, entry[role]) for role in self.networks} for entry in model["blocks"]]

    def _layers_up_to(self, role, block):
        graph = self.networks[role].file.graph
        return sum(layer["block"] <= graph["blocks"].index(block) for layer in graph["layers"])

    def step(self, images):
        losses, gradients, x = [], {}, images
        first = {role: 0 for role in self.networks}
        leaves = self.named_leaves()
        for end in self.ends:
            with torch.no_grad():
                target = run_layers(self.networks["teacher"], range(first["teacher"], end["teacher"]), x, training=False)
            made = run_layers(self.networks["student"], range(first["student"], end["student"]), x, training=True)
            loss = F.mse_loss(made, target) if end is not self.ends[-1] else F.cross_entropy(made, target.softmax(1))
            names = [entry for place in range(first["student"], end["student"]) for entry in self.parameters_of(place)]
            gradients.update(zip(names, torch.autograd.grad(loss, [leaves[name] for name in names])))
            losses.append(loss.detach())
            first, x = end, target
        descend(leaves, gradients)
        return losses, gradients

    def named_leaves(self):
        student = self.networks["student"]
        return {entry["name"]: leaf for entry, leaf in zip(student.file.graph["parameters"], student.leaves)}

    def parameters_of(self, layer):
        graph = self.networks["student"].file.graph
        return [graph["parameters"][int(name[1:])]["name"] for name in graph["layers"][layer]["parameters"]]

    def statistics(self):
        student = self.networks["student"]
        return {entry["name"]: student.shared[f"b{place}"] for place, entry in enumerate(student.file.graph["buffers"])}


def run_layers(network, places, entering, training):
    """What these layers hand on, of which the first read `entering`."""
    graph, made = network.file.graph, {}
    for place in places:
        edges = [edge for edge in graph["edges"] if edge["to"] == place]
        taken = [made.get(edge["from"], {}).get(output, entering) for edge in edges for output in edge["outputs"]]
        made[place] = dict(enumerate(network.run_layer(graph["layers"][place], taken or [entering], training)))
    read = [made[edge["from"]][edge["outputs"][0]] for edge in graph["edges"] if edge["from"] in made and edge["to"] not in made]
    return read[0] if read else made[places[-1]][0]


def descend(parameters, gradients):
    with torch.no_grad():
        for name, gradient in gradients.items():
            parameters[name].sub_(RATE * gradient)


def example():
    g = torch.Generator().manual_seed(2)
    return torch.randn(BATCH, 2, 5, 5, generator=g), torch.randint(0, CLASSES, (BATCH,), generator=g)


def made(make, seed):
    torch.manual_seed(seed)
    return make()


class Distilled(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        place = tempfile.TemporaryDirectory(prefix="frazil-distilled-")
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name)

    def export(self, teacher, student, blocks, **more):
        images, labels = example()
        return export_distillation(teacher, student, images, labels, classification, blocks, self.folder, **more)

    def test_files_and_blocks_train_as_a_program_of_pytorch(self):
        pairs = {
            "separable": (made(Staged, 0), made(lambda: Staged(separable=True), 1), ["stages.0", "stages.1", "head"]),
            "narrower": (made(lambda: Staged(convolutions=3), 2), made(lambda: Staged(convolutions=1), 3), ["stages.0", "stages.1", "head"]),
            "in two parts": (made(Staged, 4), made(lambda: Staged(separable=True), 5), [("stages.1", "stages.1"), "head"]),
        }
        for name, (teacher, student, blocks) in pairs.items():
            with self.subTest(name):
                model = self.export(teacher, student, blocks)
                plain, read = Distillation(teacher, student), FromFiles(model, self.folder)
                if len(blocks) == 2:
                    merge_stages(plain)
                for step in range(STEPS):
                    images = example()[0] * (step + 1)
                    losses, gradients = plain.step(images)
                    found, theirs = read.step(images)
                    self.assertEqual(len(losses), len(blocks))
                    self.assertTrue(all(torch.equal(a, b) for a, b in zip(losses, found, strict=True)), (losses, found))
                    self.assertEqual(gradients.keys(), theirs.keys())
                    self.assertEqual([key for key in gradients if not torch.equal(gradients[key], theirs[key])], [])
                state = plain.student.state_dict()
                left = {**read.named_leaves(), **{key: one for key, one in read.statistics().items() if not key.endswith("tracked")}}
                self.assertEqual([key for key, one in left.items() if not torch.equal(state[key], one)], [])

    def test_blocks_are_named_as_in_the_files(self):
        model = self.export(made(Resnet, 0), made(lambda: Resnet((1, 2)), 1), ["layer1", ("layer2.0", "layer2"), "fc"])
        self.assertEqual(
            model,
            {
                "kind": "distillation",
                "teacher": {"kind": "file", "path": "teacher.model"},
                "teacher_weights": "teacher.safetensors",
                "student": {"kind": "file", "path": "student.model"},
                "blocks": [
                    {"teacher": "layer1.1", "student": "layer1.0"},
                    {"teacher": "layer2.0", "student": "layer2.1"},
                    {"teacher": "fc", "student": "fc"},
                ],
            },
        )
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["student.model", "teacher.model", "teacher.safetensors"])

    def test_a_part_without_parameters_belongs_to_the_block_before_it(self):
        layers = lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4, CLASSES))  # noqa: E731
        model = self.export(layers(), layers(), ["2", "4"])
        self.assertEqual([entry["teacher"] for entry in model["blocks"]], ["0", "4"])

    def test_a_tensor_that_several_layers_read_goes_on_as_one(self):
        g = torch.Generator().manual_seed(2)
        inputs, labels = torch.randn(4, 5, generator=g), torch.tensor([0, 1, 2, 0])
        model = export_distillation(Skipping(), Skipping(), inputs, labels, classification, ["stages.0", "head"], self.folder)
        graph = ModelFile(self.folder / "student.model").graph
        self.assertEqual(len(graph["layers"][0]["outputs"]), 2)
        self.assertEqual([entry["student"] for entry in model["blocks"]], ["stages.0", "head"])

    def test_the_weights_are_the_teachers(self):
        teacher = made(Staged, 0)
        with torch.no_grad():
            teacher(example()[0])  # statistics that are not those of a start
        self.export(teacher, made(lambda: Staged(separable=True), 1), ["stages.0", "stages.1", "head"])
        state = {name: tensor.clone() for name, tensor in teacher.state_dict().items()}
        weights = frazil.read_tensors(self.folder / "teacher.safetensors")
        self.assertEqual(weights.keys(), state.keys())
        self.assertEqual([name for name, one in weights.items() if not torch.equal(one.torch(), state[name])], [])
        fresh = frazil.load_weights(made(Staged, 7), self.folder / "teacher.safetensors")
        self.assertEqual([name for name, one in fresh.state_dict().items() if not torch.equal(one, state[name])], [])

    def test_a_teacher_that_is_frozen_is_exported_and_stays_so(self):
        teacher, student = made(Staged, 0).eval().requires_grad_(False), made(Staged, 1)
        teacher.head.requires_grad_(True)
        self.export(teacher, student, ["stages.0", "stages.1", "head"])
        self.assertEqual({name for name, one in teacher.named_parameters() if one.requires_grad}, {"head.2.weight", "head.2.bias"})
        self.assertFalse(any(module.training for module in teacher.modules()))
        graph = ModelFile(self.folder / "teacher.model").graph
        self.assertTrue(all(entry["trainable"] for entry in graph["parameters"]))

    def test_a_run_configuration_gets_the_model_with_paths_from_its_folder(self):
        run = self.folder / "runs" / "run.json"
        run.parent.mkdir()
        rest = {"format": "frazil.run", "version": 1, "epochs": 3, "model": {"kind": "mlp"}, "batch_size": 8}
        run.write_text(json.dumps(rest))
        model = self.export(made(Staged, 0), made(Staged, 1), ["stages.0", "stages.1", "head"], run=run)
        self.assertEqual(model["teacher_weights"], "../teacher.safetensors")
        found = json.loads(run.read_text())
        self.assertEqual(found, {**rest, "model": model})
        self.assertEqual(list(found), list(rest))
        self.assertEqual([path.name for path in run.parent.iterdir()], ["run.json"])


def merge_stages(plain):
    """Makes one part of all stages of both networks."""
    for network in (plain.teacher, plain.student):
        parts = [("stages.1", nn.Sequential(*network.stages)), ("head", network.head)]
        network.parts = lambda parts=parts: parts


class DistilledRuns(unittest.TestCase):
    """`frazil train` on two devices, each with blocks of both networks, against the program of PyTorch."""

    SAMPLES, EPOCHS, SEED = 18, 2, 5

    def call(self, *words):
        done = subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr or done.stdout)
        return done.stdout

    def train(self, model, images, labels):
        frazil.write_tensors(self.folder / "data.safetensors", {"input0": images, "labels": labels}, {"inputs": "input0"})
        data = {"kind": "tensors", "train": ["data.safetensors"], "test": ["data.safetensors"]}
        optimizer = {"kind": "sgd", "learning_rate": RATE, "momentum": 0, "weight_decay": 0, "schedule": "constant"}
        run = {"format": "frazil.run", "version": 1, "model": model, "data": data, "optimizer": optimizer, "seed": self.SEED}
        run |= {"epochs": self.EPOCHS, "batch_size": BATCH, "micro_batch_size": BATCH}
        (self.folder / "run.json").write_text(json.dumps(run))
        self.call(*"profile --run run.json --devices 2 --rounds 1 --steps 2 --quiet --out model.json --cluster-out cluster.json".split())
        self.call(*f"plan --profile model.json --cluster cluster.json --batch {BATCH} --micro-batch {BATCH} --out plan.json".split())
        plan = json.loads((self.folder / "plan.json").read_text())
        layers = json.loads((self.folder / "model.json").read_text())["layers"]
        cut = next(at for at, layer in enumerate(layers) if layer["block"] == 1)
        stages = [{"layers": [[0, cut - 1]], "devices": [0]}, {"layers": [[cut, len(layers) - 1]], "devices": [1]}]
        plan |= {"pipelines": [{"stages": stages, "micro_batches": [[0, 0]]}], "schedule": {"name": "gpipe"}, "steps_ahead": 2}
        (self.folder / "plan.json").write_text(json.dumps(plan))
        self.call(*"train --run run.json --profile model.json --cluster cluster.json --plan plan.json --keep-plan --quiet --force --out out".split())
        return {key: tensor.torch() for key, tensor in frazil.read_tensors(self.folder / "out/weights.safetensors").items()}

    def test_have_the_bits_of_a_program_of_pytorch(self):
        torch.set_num_threads(1)
        g = torch.Generator().manual_seed(4)
        images, labels = torch.randn(self.SAMPLES, 2, 5, 5, generator=g), torch.randint(0, CLASSES, (self.SAMPLES,), generator=g)
        teacher, student = made(Staged, 0), made(lambda: Staged(separable=True), 1)
        with tempfile.TemporaryDirectory(prefix="frazil-distilled-") as name:
            self.folder = Path(name)
            model = export_distillation(teacher, student, *example(), classification, ["stages.0", "stages.1", "head"], self.folder)
            weights = self.train(model, images, labels)
        plain = Distillation(teacher, student)
        for epoch in range(self.EPOCHS):
            order = frazil.sample_order(self.SAMPLES, self.SEED, epoch)
            for first in range(0, self.SAMPLES, BATCH):
                plain.step(images[order[first : first + BATCH]])
        state = plain.student.state_dict()
        self.assertEqual(weights.keys(), state.keys())
        for key, one in weights.items():
            if "running" in key:
                self.assertTrue(torch.allclose(one, state[key], rtol=1e-6, atol=1e-6), key)
            else:
                self.assertTrue(torch.equal(one, state[key]), key)


class RefusedDistillation(unittest.TestCase):
    def expect(self, teacher, student, blocks, *parts, inputs=None, error=ExportRefused, **more):
        """The sentence has these parts and no second line, and nothing is written."""
        g = torch.Generator().manual_seed(2)
        inputs = torch.randn(4, 5, generator=g) if inputs is None else inputs
        with tempfile.TemporaryDirectory(prefix="frazil-distilled-") as folder:
            with self.assertRaises(error) as caught:
                export_distillation(teacher, student, inputs, torch.tensor([0, 1, 2, 0]), mean_of_heads, blocks, more.pop("folder", folder), **more)
            self.assertEqual(list(Path(folder).iterdir()), [])
        for part in parts:
            self.assertIn(part, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))

    def test_boundaries_of_unequal_shapes(self):
        told = "the block that ends in 0: the teacher hands on float32 [n, 5], the student float32 [n, 6], expected the same"
        self.expect(chain(5), chain(6), ["0", "1", "2"], told)
        told = "the block that ends in 2: the teacher hands on float32 [n, 3], the student float32 [n, 3, 2], expected the same"
        self.expect(chain(), chain(heads=2), ["0", "1", "2"], told)

    def test_several_tensors_between_two_blocks(self):
        blocks = ["stages.0", "stages.1", "stages.2", "head"]
        told = "the block that ends in stages.1: the teacher hands 2 tensors on (v1 float32 [n, 5], v3 float32 [n, 5]), expected one"
        self.expect(Skipping(), Skipping(), blocks, told)

    def test_names_that_there_are_not(self):
        told = 'the student: found no block and no module "stages.00", expected one of stages.0, stages.1, stages.2, head; did you mean stages.0?'
        self.expect(Skipping(), Skipping(), [("stages.0", "stages.00"), "head"], told)

    def test_blocks_out_of_order_and_a_last_one_that_is_no_head(self):
        told = "the teacher: found 0, which ends in 0, behind 1, which ends in 1, expected blocks in their order"
        self.expect(chain(), chain(), ["1", "0", "2"], told)
        self.expect(chain(), chain(), ["0", "1"], "the teacher: found 1 as the last of its blocks, expected the head, 2")
        self.expect(chain(), chain(), [("0", "0"), ("2", "1")], "the student: found 1 as the last of its blocks, expected the head, 2")

    def test_what_names_no_blocks(self):
        self.expect(chain(), chain(), ["0"], "the distillation: found 1 of its blocks, expected two or more, of which the last are the heads")
        self.expect(chain(), chain(), ["0", 2], "the distillation: found 2 among its blocks, expected a name or a pair of names")
        self.expect(chain(), chain(), "02", "the distillation: found 0 of its blocks")

    def test_heads_that_put_out_no_logits(self):
        told = "the block that ends in 2: the heads put out float32 [n, 3, 2], expected float32 [n, classes]"
        self.expect(chain(heads=2), chain(heads=2), ["0", "1", "2"], told)

    def test_what_no_file_holds_and_paths_that_are_no_place(self):
        self.expect(chain().double(), chain(), ["0", "1", "2"], "the parameter 0.weight is float64, expected float32")
        self.expect(chain(), lambda x: x, ["0", "1", "2"], "the model: found a function, expected a torch.nn.Module")
        self.expect(chain(), chain(), ["0", "1", "2"], "found no folder /nowhere", error=frazil.FrazilError, folder="/nowhere")
        with tempfile.TemporaryDirectory() as place:
            run = Path(place) / "run.json"
            self.expect(chain(), chain(), ["0", "1", "2"], "run.json: found no such file", error=frazil.FrazilError, run=run)
            run.write_text('{"format": "frazil.plan"}')
            self.expect(chain(), chain(), ["0", "1", "2"], "run.json: found another file", error=frazil.FrazilError, run=run)


def mean_of_heads(outputs, labels):
    """The loss of one head or of several, whose logits are [n, classes, heads]."""
    heads = outputs if outputs.dim() == 3 else outputs[:, :, None]
    return F.cross_entropy(heads, labels[:, None].expand(-1, heads.shape[2]))


if __name__ == "__main__":
    unittest.main()
