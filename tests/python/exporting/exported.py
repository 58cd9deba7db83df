"""The models of the tests as model files, each exported once, in one folder that goes with the process."""

import functools
import importlib.util
import tempfile
from pathlib import Path

import torch
from frazil.exporting import export_model
from interpreter import ModelFile
from models import own_samples

FOLDER = tempfile.TemporaryDirectory(prefix="frazil-exporting-")


def has(package):
    return importlib.util.find_spec(package) is not None


@functools.cache
def samples():
    """By name: all models that can be made here."""
    found = own_samples()
    if has("transformers"):
        from hugging_face import hugging_face_samples

        found += hugging_face_samples()
    if has("transformers") and has("peft"):
        from adapters import adapter_samples

        found += adapter_samples()
    return {sample.name: sample for sample in found}


@functools.cache
def exported(name):
    """The file of a model."""
    return export(samples()[name])


def export(sample):
    path = Path(FOLDER.name) / f"{sample.name}.safetensors"
    export_model(sample.model, sample.inputs, sample.labels, sample.loss, path, sample.cuts, sample.name)
    return ModelFile(path)


def replay(file, case, mode):
    """(loss, outputs, gradients) of a witness's case, "whole" or "by_layers"."""
    torch.set_num_threads(1)
    run = file.start(case["seed"])
    inputs = [file.tensors[name] for name in case["inputs"]]
    loss, outputs = getattr(run, mode)(inputs, file.tensors[case["labels"]])
    if mode == "whole":
        loss.backward()
    return loss.detach(), [output.detach() for output in outputs], run.gradients()


def differences(file, mode="by_layers"):
    """What a replay of the witness gives other bits for: "loss", "output 0", names of parameters."""
    from frazil.exporting.witness import digest

    found = []
    for case in file.graph["witness"]["cases"]:
        loss, outputs, gradients = replay(file, case, mode)
        expected = {item["parameter"]: item["digest"] for item in case["gradients"]}
        if not torch.equal(loss, file.tensors[case["loss"]]):
            found.append("loss")
        seen = zip(outputs, case["outputs"])
        found += [f"output {index}" for index, (output, name) in enumerate(seen) if not torch.equal(output, file.tensors[name])]
        found += [name for name in expected.keys() | gradients.keys() if name not in gradients or digest(gradients[name]) != expected.get(name)]
    return found
