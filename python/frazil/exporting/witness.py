"""The witness of a model file: what the model itself, run by PyTorch, gave for two batches, dropout and all.

A graph may be wrong in ways that no look at it shows (a torch.autograd.Function whose backward is lost, a constant that should have been
computed). Whoever reads the file computes the same again and compares.
"""

import copy
import hashlib
from dataclasses import dataclass
from typing import Any

import torch

from ..errors import ExportRefused
from .capture import first_line, mode_of
from .refusals import refuse
from .tensor_file import raw_bytes

SAMPLES = 256
SEED = 1234


@dataclass
class Question:
    """What is run: `read` are the positions, among the tensors that the model returns, of those that the loss reads."""

    model: torch.nn.Module
    loss: Any
    read: list
    batches: list  # of (inputs, labels)
    parameters: list  # names of those that the file holds and that train


def make_batches(inputs: tuple, labels: torch.Tensor) -> list:
    """The example batch, and the same without its last sample."""
    cut = labels.shape[0] - 1
    return [(inputs, labels), (tuple(item[:cut].clone() for item in inputs), labels[:cut].clone())]


def answer(question: Question) -> list:
    """A case for each batch: {"n", "seed", "inputs", "labels", "loss", "outputs", "gradients"}, with tensors in place of names."""
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    torch.set_num_threads(1)
    try:
        return [_run(question, inputs, labels, SEED + index) for index, (inputs, labels) in enumerate(question.batches)]
    except ExportRefused:
        raise
    except Exception as error:  # models raise errors of many kinds
        refuse(f"fails as PyTorch runs it on the example or on the example without its last sample ({first_line(error)})")
        return []
    finally:
        torch.set_num_threads(threads)
        torch.set_rng_state(state)


def _run(question: Question, inputs: tuple, labels: torch.Tensor, seed: int) -> dict:
    model = copy.deepcopy(question.model)
    model.zero_grad(set_to_none=True)
    torch.manual_seed(seed)
    with mode_of(model, training=True), torch.enable_grad():
        outputs = model(*(item.clone() for item in inputs))
        loss = question.loss(outputs, labels)
        if not isinstance(loss, torch.Tensor) or loss.dim() != 0:
            refuse("the loss is no single number")
        if not loss.isfinite():
            refuse(f"the loss of {labels.shape[0]} samples is {loss.item()}, expected a finite number")
        loss.backward()
    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(outputs) if isinstance(leaf, torch.Tensor)]
    named = dict(model.named_parameters(remove_duplicate=False))
    gradients = [(name, named[name].grad) for name in question.parameters]
    for name, gradient in gradients:
        if gradient is None:
            refuse(f"the parameter {name} gets no gradient from PyTorch, though the graph reads it")
        if not gradient.isfinite().all():
            refuse(f"the gradient of the parameter {name} has numbers that are not finite")
    return {
        "n": labels.shape[0],
        "seed": seed,
        "inputs": list(inputs),
        "labels": labels,
        "loss": loss.detach(),
        "outputs": [leaves[index].detach().contiguous() for index in question.read],
        "gradients": [_summary(name, gradient) for name, gradient in gradients],
    }


def _summary(name: str, gradient: torch.Tensor) -> dict:
    flat = gradient.detach().contiguous().reshape(-1)
    return {"parameter": name, "digest": digest(flat), "largest": float(flat.abs().max()), "samples": flat[sample_places(flat.numel())].clone()}


def digest(tensor: torch.Tensor) -> str:
    """The first 128 bits of the SHA-256 of the elements, in hexadecimal."""
    return hashlib.sha256(raw_bytes(tensor)).hexdigest()[:32]


def sample_places(count: int) -> list:
    """The places of at most 256 elements, spread evenly."""
    return list(range(count)) if count <= SAMPLES else [index * count // SAMPLES for index in range(SAMPLES)]


def name_tensors(cases: list) -> tuple:
    """The cases with names in place of tensors, and the tensors by name."""
    tensors: dict = {}

    def keep(name: str, tensor: torch.Tensor) -> str:
        tensors[name] = tensor.contiguous()
        return name

    named = []
    for index, case in enumerate(cases):
        prefix = f"frazil.witness.{index}"
        one = {
            "n": case["n"],
            "seed": case["seed"],
            "inputs": [keep(f"{prefix}.input.{i}", item) for i, item in enumerate(case["inputs"])],
            "labels": keep(f"{prefix}.labels", case["labels"]),
            "loss": keep(f"{prefix}.loss", case["loss"]),
            "outputs": [keep(f"{prefix}.output.{i}", item) for i, item in enumerate(case["outputs"])],
            "gradients": [{**item, "samples": keep(f"{prefix}.gradient.{i}", item["samples"])} for i, item in enumerate(case["gradients"])],
        }
        named.append(one)
    return named, tensors
