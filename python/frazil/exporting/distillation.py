"""`export_distillation`: a teacher and a student as model files, and what a run configuration says of their blocks (docs/python.md)."""

import contextlib
import difflib
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Iterator, Union

import torch

from ..output_path import check_output
from ..run_file import read_run, write_json
from .export_model import export_model
from .refusals import refuse
from .tensor_file import read_tensors, write_tensors

TEACHER, STUDENT = "teacher", "student"
SUFFIX = ".model"
WEIGHTS = "teacher.safetensors"


def export_distillation(
    teacher: torch.nn.Module,
    student: torch.nn.Module,
    example_inputs: Any,
    labels: torch.Tensor,
    loss: Any,
    blocks: list,
    folder: Any,
    teacher_cuts: Union[str, list] = "blocks",
    student_cuts: Union[str, list] = "blocks",
    run: Any = None,
) -> dict:
    """Writes teacher.model, student.model and teacher.safetensors into `folder`; returns the "model" of a run configuration.

    example_inputs, labels, loss, cuts: as of export_model, for both networks. That the teacher's parameters do not require gradients is no matter.
    blocks: in order, the last module or block of each part of the distillation, as a pair (of the teacher, of the student), or as one name where
    both have it; the last are the heads. Between two parts a single tensor goes on, of equal shape and type in both networks.
    run: a run configuration in which "model" is replaced. Paths are relative to its folder, without one to `folder`.

    Raises ExportRefused in one sentence where a network cannot be exported or the blocks do not fit, and FrazilError for paths; nothing is
    written then.
    """
    folder, names = Path(folder), _list_pairs(blocks)
    places = [check_output(folder / name) for name in (TEACHER + SUFFIX, STUDENT + SUFFIX, WEIGHTS)]
    configuration = None if run is None else read_run(check_output(run))
    with tempfile.TemporaryDirectory(dir=folder, prefix=".frazil-") as name:
        made = [Path(name) / place.name for place in places]
        with _trainable(teacher):
            export_model(teacher, example_inputs, labels, loss, made[0], teacher_cuts)
        export_model(student, example_inputs, labels, loss, made[1], student_cuts)
        pairs = _match(_Chain(TEACHER, made[0]), _Chain(STUDENT, made[1]), names)
        _write_weights(made[0], made[2])
        for path, place in zip(made, places):
            os.replace(path, place)
    model = _describe(places, pairs, folder if run is None else Path(run).parent)
    if configuration is not None:
        write_json(run, {**configuration, "model": model})
    return model


class _Chain:
    """The blocks of a model file, and what goes on behind each."""

    def __init__(self, role: str, path: Path):
        self.role = role
        self.graph = json.loads(read_tensors(path)[1]["frazil.model"])
        self.blocks, self.layers = self.graph["blocks"], self.graph["layers"]

    def find(self, name: str) -> int:
        """The block of this name, or the last one with a part of the module at this path."""
        if name in self.blocks:
            return self.blocks.index(name)
        inside = [index for index, block in enumerate(self.blocks) if _lies_in(block, name)]
        inside = inside or [layer["block"] for layer in self.layers if any(_lies_in(node["path"], name) for node in layer["nodes"])]
        if not inside:
            near = difflib.get_close_matches(name, self.blocks, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            refuse(f'found no block and no module "{name}", expected one of {", ".join(self.blocks)}{hint}', whole=f"the {self.role}")
        return max(inside)

    def crossing(self, block: int) -> dict:
        """By name, the tensors that layers behind this block read of it and of those before it, as {dtype, shape}."""
        found = {}
        for edge in self.graph["edges"]:
            source, target = self.layers[edge["from"]], self.layers[edge["to"]]
            if source["block"] <= block < target["block"]:
                for output in edge["outputs"]:
                    found[source["outputs"][output].partition("#")[0]] = source["output_types"][output]
        return found

    def results(self) -> dict:
        """So the tensors that the loss reads."""
        return dict(zip(self.layers[-1]["outputs"], self.layers[-1]["output_types"]))

    def inputs(self) -> list:
        return [_type_text(one) for one in self.graph["inputs"]]


def _lies_in(path: str, module: str) -> bool:
    return path == module or path.startswith(f"{module}.")


def _list_pairs(blocks: Any) -> list:
    """Pairs of names: of the teacher, of the student."""
    pairs = []
    for entry in [] if isinstance(blocks, (str, dict)) else blocks:
        pair = (entry, entry) if isinstance(entry, str) else tuple(entry) if isinstance(entry, (tuple, list)) else ()
        if len(pair) != 2 or not all(isinstance(name, str) for name in pair):
            refuse(f"found {entry!r} among its blocks, expected a name or a pair of names", whole="the distillation")
        pairs.append(pair)
    if len(pairs) < 2:
        refuse(f"found {len(pairs)} of its blocks, expected two or more, of which the last are the heads", whole="the distillation")
    return pairs


def _match(teacher: _Chain, student: _Chain, names: list) -> list:
    """The pairs of block names as the files have them. Refuses blocks that do not follow each other, and boundaries that are not alike."""
    if teacher.inputs() != student.inputs():
        refuse(f"the teacher reads {', '.join(teacher.inputs())}, the student {', '.join(student.inputs())}, expected the same", whole="the inputs")
    pairs = [(teacher.find(ours), student.find(theirs)) for ours, theirs in names]
    for place, chain in enumerate((teacher, student)):
        _check_order(chain, [pair[place] for pair in pairs], [name[place] for name in names])
    for (first, second), name in zip(pairs[:-1], names):
        _check_alike(name, [_single(teacher, teacher.crossing(first), name), _single(student, student.crossing(second), name)])
    logits = [_single(chain, chain.results(), names[-1]) for chain in (teacher, student)]
    _check_alike(names[-1], logits)
    if logits[0].count(",") != 1:
        refuse(f"the heads put out {logits[0]}, expected float32 [n, classes]", whole=_whole(names[-1]))
    return [(teacher.blocks[first], student.blocks[second]) for first, second in pairs]


def _check_order(chain: _Chain, found: list, names: list) -> None:
    for at, (block, next_block) in enumerate(zip(found, found[1:])):
        if next_block <= block:
            told = f"found {names[at + 1]}, which ends in {chain.blocks[next_block]}, behind {names[at]}, which ends in {chain.blocks[block]}"
            refuse(f"{told}, expected blocks in their order", whole=f"the {chain.role}")
    if found[-1] != len(chain.blocks) - 1:
        refuse(f"found {names[-1]} as the last of its blocks, expected the head, {chain.blocks[-1]}", whole=f"the {chain.role}")


def _single(chain: _Chain, tensors: dict, name: tuple) -> str:
    if len(tensors) != 1:
        told = ", ".join(f"{key} {_type_text(one)}" for key, one in tensors.items()) or "none"
        refuse(f"the {chain.role} hands {len(tensors)} tensors on ({told}), expected one", whole=_whole(name))
    (one,) = tensors.values()
    if one["dtype"] != "float32" or one["shape"][:1] != ["n"]:
        refuse(f"the {chain.role} hands on {_type_text(one)}, expected float32 with a row for each sample", whole=_whole(name))
    return _type_text(one)


def _check_alike(name: tuple, types: list) -> None:
    if types[0] != types[1]:
        refuse(f"the teacher hands on {types[0]}, the student {types[1]}, expected the same", whole=_whole(name))


def _whole(name: tuple) -> str:
    """What a sentence calls a block of the distillation."""
    return f"the block that ends in {name[0]}" if name[0] == name[1] else f"the block that ends in {name[0]} of the teacher and {name[1]} of the student"


def _type_text(one: dict) -> str:
    return f"{one['dtype']} {_shape_text(one['shape'])}"


def _shape_text(shape: list) -> str:
    return "[" + ", ".join(size if isinstance(size, str) else json.dumps(size) for size in shape) + "]"


@contextlib.contextmanager
def _trainable(model: Any) -> Iterator[None]:
    """Has all parameters require gradients meanwhile: a file holds no model of which nothing trains, and a teacher is frozen by the run."""
    parameters = list(model.parameters()) if isinstance(model, torch.nn.Module) else []
    before = [parameter.requires_grad for parameter in parameters]
    try:
        for parameter in parameters:
            parameter.requires_grad_(True)
        yield
    finally:
        for parameter, wanted in zip(parameters, before):
            parameter.requires_grad_(wanted)


def _write_weights(model: Path, path: Path) -> None:
    """Writes what a run of the model file would leave as its weights."""
    tensors, metadata = read_tensors(model)
    graph = json.loads(metadata["frazil.model"])
    statistics = [entry["tensor"] for entry in graph["buffers"]]
    names = dict.fromkeys([*(entry["tensor"] for entry in graph["parameters"]), *graph["kept"], *statistics])
    told = {"statistics": ",".join(statistics), "unchanged": ",".join(graph["kept"])}
    told = {"format": "pt", "model": graph["name"], **{key: text for key, text in told.items() if text}}
    write_tensors(path, {name: tensors[name] for name in names}, told)


def _describe(places: list, pairs: list, base: Path) -> dict:
    teacher, student, weights = (os.path.relpath(place, base) for place in places)
    return {
        "kind": "distillation",
        "teacher": {"kind": "file", "path": teacher},
        "teacher_weights": weights,
        "student": {"kind": "file", "path": student},
        "blocks": [{"teacher": ours, "student": theirs} for ours, theirs in pairs],
    }
