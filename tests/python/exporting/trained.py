"""Model files under `frazil train`: its weights are those of a loop in PyTorch over the same samples, bit for bit."""

import copy
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import replace
from pathlib import Path

import frazil
import torch
from exported import export, exported, samples
from frazil.tensors import open_tensors
from keyed import KeyedMasks, find_draws

PROGRAM = Path(os.environ.get("FRAZIL_BIN", "build/bin")) / "frazil"
SAMPLES, BATCH, EPOCHS, SEED = 40, 8, 4, 5  # 20 steps
OPTIMIZER = {"kind": "adamw", "learning_rate": 0.01, "weight_decay": 0.1, "schedule": "constant"}
EVERY_MODEL = Path(__file__).resolve().parents[2] / "exec/verbs/every_model.py"
EVERY = bool(os.environ.get("FRAZIL_EVERY_MODEL"))
BY_TURNS = ("mlp", "gpt", "vit", "bert", "encoder", "hf_gpt2", "hf_llama", "hf_vit", "hf_bert", "hf_t5", "cnn", "hf_resnet", "lstm", "peft_lora")
RUNNING = ("running_mean", "running_var")  # folded by other operations than PyTorch's: within 1e-6
RATES = ("p", "rate", "dropout", "dropout_prob", "attention_dropout")


def find_day():
    """Days since 1970: the number in FRAZIL_DAY, else what the clock says."""
    day = os.environ.get("FRAZIL_DAY", "")
    return int(day) if day.isdigit() else int(time.time()) // 86400


def by_turns(names, count):
    """So many of the names, other ones each day; all of them with FRAZIL_EVERY_MODEL."""
    names = list(names)
    if EVERY or count >= len(names):
        return names
    turn = count * find_day()
    return [names[(turn + i) % len(names)] for i in range(count)]


def without_dropout(sample):
    """The same model with all rates of dropout 0, for PyTorch draws in another order than plans do."""
    model = copy.deepcopy(sample.model)
    for module in model.modules():
        for name in RATES:
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    return replace(sample, model=model, name=f"{sample.name}_without_dropout")


def draw_rows(sample, count=SAMPLES):
    """(inputs, labels) of so many training samples: rows of the example in any order, numbers moved a little."""
    g = torch.Generator().manual_seed(3)
    rows, others = (torch.randint(0, sample.labels.shape[0], (count,), generator=g) for _ in range(2))

    def take(item):
        taken = item[rows]
        return taken + 0.1 * torch.randn(taken.shape, generator=g) if item.is_floating_point() else taken

    return [take(item) for item in sample.inputs], sample.labels[others]


def is_as_expected(name, found, expected):
    if name.endswith(RUNNING):
        return torch.allclose(found, expected, rtol=1e-6, atol=1e-6)
    return torch.equal(found, expected)


def untie(model, used):
    """(parameter, use) for every use of each parameter; behind the first, uses become leaves of their own."""
    uses = [(parameter, parameter) for parameter in used]
    first = {id(parameter): parameter for parameter in used}
    seen = set()
    for module in model.modules():
        for name, parameter in list(module._parameters.items()):
            if id(parameter) in seen and parameter is not None:
                setattr(module, name, torch.nn.Parameter(parameter.detach().clone()))
                uses.append((first[id(parameter)], module._parameters[name]))
            seen.add(id(parameter))
    return uses


def write_data(path, inputs, labels):
    names = [f"input{i}" for i in range(len(inputs))]
    frazil.write_tensors(path, {**dict(zip(names, inputs)), "labels": labels}, {"inputs": ",".join(names)})


class Run:
    """A folder with a model file, data, and a run over them."""

    def __init__(self, folder, sample):
        self.folder, self.sample = Path(folder), sample
        self.inputs, self.labels = draw_rows(sample)
        self.model = export(sample).path
        write_data(self.folder / "data.safetensors", self.inputs, self.labels)

    def graph(self):
        return json.loads(open_tensors(self.model)[1]["frazil.model"])

    def call(self, *words):
        done = subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{self.sample.name}: {' '.join(words)}: {done.stderr or done.stdout}"
        return done.stdout

    def train(self, micro_batch, *flags):
        """The weights after all steps."""
        data = {"kind": "tensors", "train": ["data.safetensors"], "test": ["data.safetensors"]}
        run = {"format": "frazil.run", "version": 1, "model": {"kind": "file", "path": str(self.model)}, "data": data}
        run |= {"optimizer": OPTIMIZER, "epochs": EPOCHS, "batch_size": BATCH, "micro_batch_size": micro_batch, "seed": SEED}
        (self.folder / "run.json").write_text(json.dumps(run))
        self.call(*"profile --run run.json --devices 2 --rounds 1 --steps 2 --quiet --out model.json --cluster-out cluster.json".split())
        self.call(*"train --run run.json --profile model.json --cluster cluster.json --quiet --force --out out".split(), *flags)
        return frazil.read_tensors(self.folder / "out/weights.safetensors")

    def loop(self, micro_batch):
        """The model after the same steps of PyTorch, whose gradients are added along the same tree, one for each use of a parameter."""
        torch.set_num_threads(1)
        model, draws = copy.deepcopy(self.sample.model).train(), find_draws(self.graph())
        used = [parameter for parameter in model.parameters() if parameter.requires_grad]
        uses = untie(model, used) if micro_batch < BATCH else list(zip(used, used))
        rate, decay = OPTIMIZER["learning_rate"], OPTIMIZER["weight_decay"]
        optimizer = torch.optim.AdamW(used, lr=rate, weight_decay=decay, fused=True)
        step = 0
        for epoch in range(EPOCHS):
            order = frazil.sample_order(SAMPLES, SEED, epoch)
            for first in range(0, SAMPLES, BATCH):
                parts = [order[at : at + micro_batch] for at in range(first, first + BATCH, micro_batch)]
                trees = []
                for part in parts:
                    with KeyedMasks(draws, SEED, step) as masks:
                        trees.append(self.gradients(model, [use for _, use in uses], part))
                    assert masks.taken in (0, len(draws)), "without dropout no draw, else each of the model file once"
                step += 1
                while len(trees) > 1:
                    trees = [[a if b is None else a + b for a, b in zip(*pair)] for pair in zip(trees[::2], trees[1::2])]
                optimizer.zero_grad()
                for (parameter, _), gradient in zip(uses, trees[0]):
                    parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
                optimizer.step()
                with torch.no_grad():
                    for parameter, use in uses:
                        use.copy_(parameter)
        return model

    def gradients(self, model, used, rows):
        outputs = model(*(item[rows] for item in self.inputs))
        loss = self.sample.loss(outputs, self.labels[rows]) * (len(rows) / BATCH)
        return torch.autograd.grad(loss, used, allow_unused=True)


@unittest.skipUnless(PROGRAM.exists(), f"{PROGRAM} is not there")
class Trained(unittest.TestCase):
    def expect_loop(self, sample, micro_batch):
        name = sample.name
        with tempfile.TemporaryDirectory() as folder:
            run = Run(folder, sample)
            weights, expected = run.train(micro_batch), run.loop(micro_batch).state_dict()
            other = [key for key, tensor in weights.items() if not is_as_expected(key, tensor.torch(), expected[key])]
            self.assertEqual(other, [], name)
            frazil.load_weights(copy.deepcopy(run.sample.model), Path(folder) / "out")

    def test_weights_are_those_of_a_loop_over_whole_batches_for_three_models_by_turns(self):
        for name in by_turns(samples(), 3):
            with self.subTest(name):
                self.expect_loop(without_dropout(samples()[name]), BATCH)

    def test_weights_with_dropout_are_those_of_a_loop_with_the_keyed_masks_put_in_for_two_models_by_turns(self):
        drawing = [name for name in samples() if find_draws(exported(name).graph)]
        self.assertGreater(len(drawing), 4)
        for name in by_turns(drawing, 2):
            with self.subTest(name):
                self.expect_loop(samples()[name], BATCH)

    def test_weights_are_those_of_a_loop_that_adds_micro_batches_along_the_tree(self):
        for name in ("mlp", "gpt", "bert", "cnn", "hf_resnet"):
            with self.subTest(name):
                self.expect_loop(without_dropout(samples()[name]), micro_batch=2)

    def test_what_does_not_train_has_no_optimizer_state_in_checkpoints_and_profiles(self):
        if "peft_lora" not in samples():
            self.skipTest("peft is not there")
        with tempfile.TemporaryDirectory() as folder:
            run = Run(folder, without_dropout(samples()["peft_lora"]))
            weights = run.train(BATCH, "--checkpoint-every", "10")
            names = {entry["name"]: entry["trainable"] for entry in run.graph()["parameters"]}
            kept = frazil.read_tensors(sorted(Path(folder).glob("out/checkpoints/step-*.safetensors"))[-1])
            moments = {name.removeprefix("first_moment.") for name in kept if name.startswith("first_moment.")}
            self.assertEqual(moments, {name for name, trains in names.items() if trains})
            layers = json.loads((Path(folder) / "model.json").read_text())["layers"]
            trained = sum(weights[name].torch().nbytes for name in moments)
            self.assertEqual(sum(layer["optimizer_state_bytes"] for layer in layers), 2 * trained)

    def test_bits_are_the_same_under_plans_freezing_caches_processes_and_a_resume_for_one_model_by_turns(self):
        names = by_turns([name for name in BY_TURNS if name in samples()], 1)
        with tempfile.TemporaryDirectory() as folder:
            places = [Path(folder) / name for name in names]
            for place in places:
                place.mkdir()
                (place / "model.safetensors").symlink_to(exported(place.name).path)
                write_data(place / "data.safetensors", *draw_rows(samples()[place.name], 64))
            command = [sys.executable, EVERY_MODEL, *places]
            done = subprocess.run(command, env={**os.environ, "FRAZIL": str(PROGRAM)}, capture_output=True, text=True, timeout=3000 if EVERY else 600)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            print(done.stdout)
