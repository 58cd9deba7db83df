"""Records a model with torch.export: the operations of its forward, in training mode, for a batch of any size."""

import contextlib
import inspect
import io
import logging
import traceback
import warnings
from typing import Any, Iterator
from unittest import mock

import torch
import torch.utils.checkpoint
from torch._dynamo.exc import UserError, UserErrorType
from torch.export import Dim, export
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv

from ..errors import ExportRefused
from .refusals import refuse

PACKAGES = ("/torch/", "/frazil/exporting/")


def capture(model: torch.nn.Module, inputs: tuple, refuses_functions: bool = True) -> Any:
    """The exported program of the model in the mode in which it is. Refuses what depends on the values of tensors.

    refuses_functions: whether a torch.autograd.Function in the forward is refused; the backward that it defines would be lost.
    """
    batch = Dim("n", min=1)
    return _export(model, inputs, _shapes_of(model, inputs, batch), "the model", refuses_functions)


def capture_loss(loss: "LossOfLeaves", tensors: list, labels: torch.Tensor, dimensions: list) -> Any:
    """The exported program of a loss over these tensors and labels; dimensions: of each tensor, {dimension: polynomial}."""
    batch = Dim("n", min=1)
    shapes = ([{key: _dimension(size, batch) for key, size in one.items()} for one in dimensions], {0: batch})
    return _export(loss, (tensors, labels), shapes, "the loss", refuses_functions=False)


def check_loss(model: torch.nn.Module, loss: Any, outputs: Any, labels: torch.Tensor, recorded: Any) -> None:
    """Refuses a loss that reads parameters by itself, whose gradient would be lost. outputs: without gradients; recorded: the loss's program."""
    for value in recorded.parameters + recorded.buffers:
        refuse(f"the loss has parameters or running statistics of its own ({value.tensor}), expected a function of outputs and labels")
    try:
        with torch.enable_grad(), torch.random.fork_rng(devices=[]):
            result = loss(outputs, labels)
    except Exception:  # check_mean tells of it
        return
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for leaf in _leaves(result.grad_fn) if isinstance(result, torch.Tensor) else []:
        refuse(f"the loss reads {names.get(id(leaf), 'a tensor that requires gradients')} by itself, expected a function of outputs and labels")


def _leaves(function: Any) -> Iterator[torch.Tensor]:
    """The tensors to which autograd hands gradients from this function."""
    waiting, seen = [function], {None}
    while waiting:
        function = waiting.pop()
        if function in seen:
            continue
        seen.add(function)
        if hasattr(function, "variable"):
            yield function.variable
        waiting.extend(following for following, _ in function.next_functions)


@contextlib.contextmanager
def mode_of(model: torch.nn.Module, training: bool) -> Iterator[None]:
    """Puts a model into a mode; training where it trains already leaves modules alone that are set apart. Puts all back."""
    modes = [(module, module.training) for module in model.modules()]
    if training != model.training:
        model.train(training)
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


class LossOfLeaves(torch.nn.Module):
    """A loss as a function of the tensors among what the model returns, and of the labels.

    leaves, spec: what the model returned, flattened by torch's pytree.
    """

    def __init__(self, loss: Any, leaves: list, spec: Any):
        super().__init__()
        self.loss = loss
        self.others = [None if isinstance(leaf, torch.Tensor) else (leaf,) for leaf in leaves]
        self.spec = spec

    def forward(self, tensors: list, labels: torch.Tensor) -> torch.Tensor:
        left = iter(tensors)
        leaves = [next(left) if other is None else other[0] for other in self.others]
        return self.loss(torch.utils._pytree.tree_unflatten(leaves, self.spec), labels)


def _shapes_of(model: torch.nn.Module, inputs: tuple, batch: Any) -> Any:
    shapes = tuple({0: batch} for _ in inputs)
    signature = inspect.signature(model.forward)
    takes_rest = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in signature.parameters.values())
    return (shapes,) if takes_rest else shapes


def _dimension(size: Any, batch: Any) -> Any:
    if size == "n":
        return batch
    numbers = [part for part in size[1:] if isinstance(part, int)]
    if size[0] == "*" and len(numbers) == 1 and len(size) == 3 and "n" in size:
        return numbers[0] * batch
    refuse(f"returns a tensor with a dimension of size {size}, expected n or a multiple of n")
    return None


def _export(module: torch.nn.Module, arguments: tuple, shapes: Any, whole: str, refuses_functions: bool) -> Any:
    """whole: what the module is to the user."""
    count = torch.utils._pytree.tree_leaves(arguments)[-1].shape[0]
    place = Place(module, whole)
    try:
        with place.follow(), _watch_sizes(place), _refuse_functions(place) if refuses_functions else contextlib.nullcontext(), _quiet():
            return export(module, arguments, dynamic_shapes=shapes, strict=False)
    except ExportRefused:
        raise
    except Exception as error:  # torch raises errors of many kinds
        if isinstance(error, UserError) and error.error_type is UserErrorType.CONSTRAINT_VIOLATION:
            refuse(f"fixes the batch at {count} samples, expected code for any number of them, as x.shape[0] and -1 tell it", *place.fixed)
        if isinstance(error, GuardOnDataDependentSymNode):
            refuse("branches on, or counts by, the values of a tensor, which a recorded graph cannot hold", *place.now(_source_of(error)))
        refuse(f"torch.export cannot record it: {first_line(error)}", *place.now(_source_of(error)))
    return None


class Place:
    """Where in a model an export is."""

    def __init__(self, model: torch.nn.Module, whole: str):
        self._paths = {module: path for path, module in model.named_modules()}
        self._running: list = []
        self._whole = whole
        self.fixed = self.now("")  # where the batch lost its any size

    def now(self, source: str) -> tuple:
        """What `refuse` takes: the path of the module that runs, the line, what it is said of without a module."""
        return self._running[-1] if self._running else "", source, self._whole

    @contextlib.contextmanager
    def follow(self) -> Iterator[None]:
        def enter(module: Any, _: Any) -> None:
            self._running.append(self._paths.get(module, ""))

        def leave(*_: Any) -> None:
            self._running.pop()

        registered = torch.nn.modules.module
        hooks = [registered.register_module_forward_pre_hook(enter), registered.register_module_forward_hook(leave)]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


@contextlib.contextmanager
def _watch_sizes(place: Place) -> Iterator[None]:
    """Notes where a size that may be any becomes a number."""
    original = ShapeEnv._set_replacement

    def note(self: Any, symbol: Any, target: Any, message: str) -> None:
        if target.is_number:
            place.fixed = place.now(user_line(traceback.extract_stack()))
        original(self, symbol, target, message)

    with mock.patch.object(ShapeEnv, "_set_replacement", note):
        yield


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps back what torch says of its own doings, such as the whole graph that it prints beside an error."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def first_line(error: Exception) -> str:
    """What an error of someone else says, in a line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def _source_of(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return user_line(frames)


def user_line(frames: Any) -> str:
    """The last of these frames that lies in neither torch nor the exporter, as file:line."""
    users = [frame for frame in frames if not any(part in frame.filename for part in PACKAGES) and not frame.filename.startswith("<")]
    return f"{users[-1].filename.rpartition('/')[2]}:{users[-1].lineno}" if users else ""


@contextlib.contextmanager
def _refuse_functions(place: Place) -> Iterator[None]:
    """Refuses each torch.autograd.Function that runs meanwhile."""
    below = torch.autograd.function._SingleLevelFunction  # whose `apply` Function.apply calls, to which users may hold references

    def apply(cls: Any, *arguments: Any, **keywords: Any) -> Any:
        if cls is torch.utils.checkpoint.CheckpointFunction:
            refuse("uses a reentrant checkpoint, expected use_reentrant=False", *place.now(user_line(traceback.extract_stack())))
        if cls.__module__.startswith("torch."):
            return super(below, cls).apply(*arguments, **keywords)
        source = user_line(traceback.extract_stack())
        refuse(f"uses {cls.__name__}, a torch.autograd.Function, whose backward an export loses", *place.now(source))
        return None

    below.apply = classmethod(apply)
    try:
        yield
    finally:
        del below.apply
