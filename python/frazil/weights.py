"""`load_weights`: what a training of Frazil left, put into a module of PyTorch under its own names."""

import difflib
from pathlib import Path
from typing import Any

from .errors import FrazilError, bad_input
from .tensors import open_tensors

MOST_TOLD = 3
WEIGHTS = "weights.safetensors"  # in the folder of a run


def load_weights(model: Any, path: Any) -> Any:
    """Copies the tensors of a safetensors file, or of `weights.safetensors` in the folder of a run, into the module; returns the module.

    Every tensor of the file must be a parameter or buffer of the module, of the same shape, and every parameter and every buffer of floats
    must be in the file; counters and indices (integer buffers) may be missing and stay as they are. Of tied parameters, which are one tensor
    under several names, one name is enough. Raises FrazilError, and changes nothing, where names or shapes differ.
    """
    path = Path(path)
    if path.is_dir():
        path = path / WEIGHTS
    tensors, _ = open_tensors(path)
    theirs = _targets_of(model)
    _expect_known(path, tensors, theirs)
    _expect_complete(path, tensors, theirs)
    _expect_shapes(path, tensors, theirs)
    made = {name: tensor.torch() for name, tensor in tensors.items()}
    _expect_equal_ties(path, made, theirs)
    for name, value in made.items():
        theirs[name].copy_(value)
    return model


def _targets_of(model: Any) -> dict:
    """The module's own tensors by name, detached, so that copying is no operation of a graph."""
    try:
        return {name: value for name, value in model.state_dict().items() if hasattr(value, "copy_")}
    except AttributeError:
        raise FrazilError(f"found a {type(model).__name__}, expected a module of PyTorch", 2) from None


def _place_of(value: Any) -> tuple:
    """Equal for tensors that are one."""
    return (str(value.device), value.data_ptr(), tuple(value.shape), value.stride()) if value.numel() else (id(value),)


def _expect_known(path: Path, tensors: dict, theirs: dict) -> None:
    unknown = sorted(tensors.keys() - theirs.keys())
    if unknown:
        near = difflib.get_close_matches(unknown[0], theirs, 1)
        raise bad_input(path, f"{_tell(unknown)}, which the module does not have", "its names" + (f"; did you mean {near[0]}?" if near else ""))


def _expect_complete(path: Path, tensors: dict, theirs: dict) -> None:
    given = {_place_of(theirs[name]) for name in tensors}
    missing = [name for name, value in theirs.items() if name not in tensors and value.is_floating_point() and _place_of(value) not in given]
    if missing:
        raise bad_input(path, f"no {_tell(missing)}", "all parameters and buffers of the module")


def _expect_shapes(path: Path, tensors: dict, theirs: dict) -> None:
    for name, tensor in tensors.items():
        if tensor.shape != tuple(theirs[name].shape):
            raise bad_input(path, f"shape {list(tensor.shape)} of {name}", f"{list(theirs[name].shape)}, as the module has it")


def _expect_equal_ties(path: Path, made: dict, theirs: dict) -> None:
    first: dict = {}
    for name, value in made.items():
        other = first.setdefault(_place_of(theirs[name]), name)
        if other != name and not bool((made[other] == value).all()):
            raise bad_input(path, f"different values of {other} and {name}", "equal ones: the module ties them")


def _tell(names: list) -> str:
    more = f" and {len(names) - MOST_TOLD} more" if len(names) > MOST_TOLD else ""
    return ", ".join(names[:MOST_TOLD]) + more
