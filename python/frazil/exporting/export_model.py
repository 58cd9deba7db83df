"""`export_model`: a PyTorch model, with its loss, as a file that computes the same bits without Python (docs/model-file.md)."""

import copy
import json
from pathlib import Path
from typing import Any, Optional, Union

import torch

from ..output_path import check_output
from .capture import LossOfLeaves, capture, capture_loss, check_loss, mode_of
from .checks import check_example, check_model
from .evaluation import add_evaluation, check_flags, is_same
from .layers import Layers, make_layers
from .mean_loss import check_mean
from .mixing import note_mixing
from .model_text import ModelText, write_model_text
from .program import Program, Value
from .ranges import check_cuts, check_writes, cut, list_blocks, list_needed
from .refusals import refuse
from .tensor_file import write_tensors
from .translation import Translation
from .witness import Question, make_batches, name_tensors
from .witness_process import make_witness


def export_model(
    model: torch.nn.Module,
    example_inputs: Any,
    labels: torch.Tensor,
    loss: Any,
    path: Any,
    cuts: Union[str, list] = "blocks",
    name: Optional[str] = None,
) -> Path:
    """Writes `model` and `loss` to the model file `path` and returns the path; says on stdout which parameters the loss does not depend on.

    example_inputs: a tensor or a tuple of tensors, labels: a tensor; the first dimension of each is the batch, of two samples or more,
    which may have any size in training. loss: a function of what the model returns and of the labels, whose mean over the batch it gives.
    cuts: "blocks" makes each child of each outermost ModuleList a layer, which may be frozen; a list of module paths makes finer layers.
    The model is recorded as it trains: one that is in evaluation as a whole is put into training meanwhile; modules that are set apart stay so.

    Raises ExportRefused, in one sentence, for what a file cannot hold, and FrazilError where `path` is no place for one; nothing is written then.
    """
    path = check_output(path)
    inputs = tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    check_model(model)
    check_example(model, inputs, labels)
    finer = check_cuts(model, cuts)
    blocks = list_blocks(model)
    training, layers, read = _make_model(model, inputs, blocks, finer, loss, labels)
    text = _write_text(model, name or type(model).__name__, training, layers, read)
    _keep_unchanged(model, text)
    _tell_unused(model, text)
    trained = [entry["name"] for entry in text.graph["parameters"] if entry["trainable"]]
    if not trained:
        refuse("has no parameter that trains: requires_grad is False for all that the loss depends on")
    question = Question(model, loss, read.positions, make_batches(inputs, labels), list(dict.fromkeys(trained)))
    mark, cases = make_witness(question)
    named, tensors = name_tensors(cases)
    text.graph["witness"] = {"fingerprint": mark, "cases": named}
    write_tensors(path, {**text.tensors, **tensors}, {"format": "pt", "frazil.model": json.dumps(text.graph, separators=(",", ":"))})
    return path


class _Read:
    """The loss as a program with its constants, and which of the tensors that the model returns it reads."""

    def __init__(self, program: Program, kept: dict, positions: list):
        self.program, self.kept, self.positions = program, kept, positions


def _make_model(model: Any, inputs: tuple, blocks: list, finer: list, loss: Any, labels: Any) -> tuple:
    names = _first_names(model)
    with mode_of(model, training=True):
        training = Translation(capture(model, inputs), names)
        read = _read_loss(model, inputs, training.program, loss, labels)
    layers = _make_layers(training, blocks, finer, read.positions)
    note_mixing(layers, training.kept, inputs)
    with mode_of(model, training=False):
        other = Translation(capture(model, inputs), names, like=training)
    returned = _tensors(other.program.outputs)
    if max(read.positions) >= len(returned):
        refuse("returns fewer tensors in evaluation than the loss reads in training")
    wanted = [returned[index] for index in read.positions]
    used = [_tensors(training.program.outputs)[index] for index in read.positions]
    evaluated = list_needed(other.program, wanted)
    check_flags(evaluated)
    if not is_same(list_needed(training.program, used), evaluated, training.kept):
        add_evaluation(layers, _make_layers(other, blocks, finer, read.positions), training.kept)
    return training, layers, read


def _make_layers(translation: Translation, blocks: list, finer: list, positions: list) -> Layers:
    program = translation.program
    outputs = [_tensors(program.outputs)[index] for index in positions]
    nodes = list_needed(program, outputs)
    ranges = cut(nodes, blocks, finer)
    if not ranges or not ranges[0].parameters():
        refuse("has no parameters that its outputs depend on")
    if len({one.number for one in ranges}) < 2:
        refuse(
            f"makes one block ({ranges[0].block or ranges[0].unit or 'before'}), expected two or more, of which the last is the head: "
            "put what repeats into a ModuleList, or its parts into a Sequential"
        )
    check_writes(translation.shared_writes, {node: one for one in ranges for node in one.nodes})
    return make_layers(program, ranges, outputs)


def _tensors(outputs: list) -> list:
    return [value for value in outputs if isinstance(value, Value)]


def _read_loss(model: Any, inputs: tuple, program: Program, loss: Any, labels: torch.Tensor) -> _Read:
    """Records the loss over what the model returns, and keeps of that what the loss reads."""
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        outputs = copy.deepcopy(model)(*(item.clone() for item in inputs))
    leaves, spec = torch.utils._pytree.tree_flatten(outputs)
    dimensions = [{i: size for i, size in enumerate(value.shape) if not isinstance(size, int)} for value in _tensors(program.outputs)]
    call, tensors = LossOfLeaves(loss, leaves, spec), [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    translation = Translation(capture_loss(call, tensors, labels, dimensions), {})
    recorded = translation.program
    check_loss(model, loss, torch.utils._pytree.tree_unflatten(leaves, spec), labels, recorded)
    if len(_tensors(recorded.outputs)) != 1 or recorded.outputs[0].shape != []:
        refuse("the loss is no single number")
    recorded.nodes = list_needed(recorded, recorded.outputs)
    used = {value for node in recorded.nodes for value in node.reads()} | set(recorded.outputs)
    positions = [index for index, value in enumerate(recorded.inputs[:-1]) if value in used]
    if not positions:
        refuse("the loss reads nothing of what the model returns")
    check_mean(program, recorded, positions, call, tensors, labels, dimensions)
    recorded.inputs = [recorded.inputs[index] for index in positions] + recorded.inputs[-1:]
    return _Read(recorded, translation.kept, positions)


def _first_names(model: torch.nn.Module) -> dict:
    """Of each parameter and buffer the first name that the model has for it."""
    first: dict = {}
    named = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    return {name: first.setdefault(id(tensor), name) for name, tensor in named}


def _write_text(model: torch.nn.Module, name: str, training: Translation, layers: Layers, read: _Read) -> ModelText:
    wants = {key: parameter.requires_grad for key, parameter in model.named_parameters(remove_duplicate=False)}
    return write_model_text(name, training.program, layers, read.program, {**training.kept, **read.kept}, wants.__getitem__)


def _keep_unchanged(model: torch.nn.Module, text: ModelText) -> None:
    """Has the file hold what else a module needs to be loaded: parameters and buffers of floats that training does not change."""
    changed = {entry["tensor"] for entry in [*text.graph["parameters"], *text.graph["buffers"]]}
    persistent = model.state_dict().keys()
    named = [*model.named_parameters(), *model.named_buffers()]
    kept = {name: tensor for name, tensor in named if name in persistent and name not in changed and tensor.is_floating_point()}
    text.tensors.update({name: tensor.detach().contiguous() for name, tensor in kept.items()})
    text.graph["kept"] = list(kept)


def _tell_unused(model: torch.nn.Module, text: ModelText) -> None:
    held = {entry["name"] for entry in text.graph["parameters"]}
    unused = [name for name, _ in model.named_parameters() if name not in held]
    if unused:
        print(f"frazil: not trained, for the loss does not depend on them: {', '.join(unused)}")
