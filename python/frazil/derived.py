"""`derive_network`: the network that a supernet has found, with the weights that it has learnt there."""

import os
import re
from pathlib import Path
from typing import Any

from .errors import bad_input
from .output_path import check_output
from .run_file import read_run, write_json
from .tensors import open_tensors, write_tensors
from .weights import WEIGHTS

MODEL = "model.json"
OPERATIONS = ("k3e3", "k3e6", "k5e3", "k5e6", "k7e3", "k7e6", "zero")  # in the order of a cell's architecture parameters
SEARCH = ("architecture_every", "architecture_from")  # keys that a supernet has beside those of a mobilenet
CELL = re.compile(r"stage([1-9]\d*)\.(\d+)\.architecture")
WEIGHT = re.compile(r"stage([1-9]\d*)\.(\d+)\.(k[357]e[36])\.(.+)")


def derive_network(weights: Any, run: Any, folder: Any, retrain: Any = None) -> dict:
    """Writes the network of the most probable operation of each cell, of equals the first; returns the "model" of a run configuration.

    weights: the folder of the run that has trained a supernet, alone or as a student, or the weights that it has left.
    run: the configuration of that run.
    folder: gets `model.json`, the network, of kind `mobilenet`, and `weights.safetensors`, its weights and running statistics.
    retrain: a configuration to be written, beside `run`, of a run that trains the network from these weights on: that of `run` with another
    "model" and "init_from", and without groups of the optimizer that match none of the network's names. Of a distillation it has no "freeze",
    whose masks count other blocks.

    Raises FrazilError in one sentence where the files do not belong together or a path is no good; nothing is written then.
    """
    weights, folder, configuration = Path(weights), Path(folder), read_run(run)
    if weights.is_dir():
        weights = weights / WEIGHTS
    places = [check_output(folder / name, [weights, run]) for name in (MODEL, WEIGHTS)]
    if retrain is not None:
        _expect_beside(check_output(retrain, [weights, run, *places]), Path(run))
    supernet = _find_supernet(run, configuration)
    tensors, metadata = open_tensors(weights)
    chosen = _choose(weights, tensors)
    model = _describe(run, supernet, weights, chosen)
    found = _pick(weights, tensors, chosen)
    write_tensors(places[1], found, {"format": "pt", "model": "mobilenet", **{key: metadata[key] for key in ("steps",) if key in metadata}})
    write_json(places[0], model)
    if retrain is not None:
        write_json(retrain, _continue(configuration, model, found, os.path.relpath(places[1], Path(retrain).parent)))
    return model


def _expect_beside(retrain: Path, run: Path) -> None:
    if retrain.parent.resolve() != run.parent.resolve():
        raise bad_input(retrain, "a configuration in another folder", f"one beside {run}, from where its paths start")


def _find_supernet(run: Any, configuration: dict) -> dict:
    model = configuration.get("model", {})
    if isinstance(model, dict) and model.get("kind") == "distillation":
        model = model.get("student", {})
    if not isinstance(model, dict) or model.get("kind") != "supernet":
        raise bad_input(run, "a run that trains another network", 'one whose "model", or the "student" of it, is of kind "supernet"')
    return model


def _choose(path: Path, tensors: dict) -> dict:
    """The name of the operation by (stage, cell), from 0 and in order."""
    chosen = {}
    for name, tensor in tensors.items():
        cell = CELL.fullmatch(name)
        if cell is None:
            continue
        if tensor.kind != "F32" or tensor.shape not in ((len(OPERATIONS) - 1,), (len(OPERATIONS),)):
            raise bad_input(path, f"{name} of type {tensor.kind} and shape {list(tensor.shape)}", "a float32 number for each operation of a cell")
        numbers = tensor.numbers()
        chosen[int(cell.group(1)) - 1, int(cell.group(2))] = OPERATIONS[numbers.index(max(numbers))]
    return dict(sorted(chosen.items()))


def _describe(run: Any, supernet: dict, path: Path, chosen: dict) -> dict:
    stages = [[] for _ in range(1 + max((stage for stage, _ in chosen), default=-1))]
    for (stage, cell), operation in chosen.items():
        if cell != len(stages[stage]):
            raise bad_input(path, f"no architecture of cell stage{stage + 1}.{len(stages[stage])}", "the weights of a supernet")
        stages[stage].append(operation)
    if not stages or not all(stages):
        raise bad_input(path, "a stage without architecture parameters" if stages else "no architecture parameters", "the weights of a supernet")
    expected = supernet.get("cells")
    if expected is not None and expected != [len(stage) for stage in stages]:
        raise bad_input(path, f"stages of {[len(stage) for stage in stages]} cells", f"those of {run}, {expected}")
    kept = {key: value for key, value in supernet.items() if key not in SEARCH}
    return {**kept, "kind": "mobilenet", "operations": stages}


def _pick(path: Path, tensors: dict, chosen: dict) -> dict:
    """The tensors of the chosen operations, named without them, and those that belong to no cell."""
    picked = {}
    for name, tensor in tensors.items():
        weight = WEIGHT.fullmatch(name)
        if weight is None:
            if not CELL.fullmatch(name):
                picked[name] = tensor
        elif chosen.get((int(weight.group(1)) - 1, int(weight.group(2)))) == weight.group(3):
            picked[f"stage{weight.group(1)}.{weight.group(2)}.{weight.group(4)}"] = tensor
    for (stage, cell), operation in chosen.items():
        if operation != "zero" and f"stage{stage + 1}.{cell}.project.weight" not in picked:
            raise bad_input(path, f"no weights of {operation} in cell stage{stage + 1}.{cell}", "the weights of a supernet")
    return picked


def _continue(configuration: dict, model: dict, tensors: dict, weights: str) -> dict:
    was_distilled = configuration["model"].get("kind") == "distillation"
    kept = {key: value for key, value in configuration.items() if not (was_distilled and key == "freeze")}
    optimizer = kept.get("optimizer")
    if isinstance(optimizer, dict) and isinstance(optimizer.get("groups"), list):
        groups = [group for group in optimizer["groups"] if _matches_some(group, tensors)]
        kept["optimizer"] = {**optimizer, "groups": groups}
    return {**kept, "model": model, "init_from": weights}


def _matches_some(group: Any, names: dict) -> bool:
    """Whether a group of the optimizer is of any parameter that is left; one of architecture parameters alone is not, and programs refuse it."""
    match = group.get("match") if isinstance(group, dict) else None
    if not isinstance(match, str):
        return True
    pattern = re.compile(re.escape(match).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)
    return any(pattern.fullmatch(name) for name in names)
