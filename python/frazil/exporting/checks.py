"""What can be said of a model and its example before anything is recorded."""

import inspect
from typing import Any

import torch

from .refusals import refuse

SHORTEST_BATCH = 2  # torch.export takes a size of 1 for one that never changes
TYPES = (torch.float32, torch.int64, torch.bool)
EXAMPLE = "the example"


def check_model(model: Any) -> None:
    """Refuses what no graph could show: compiled modules, parameters that are not float32 or have hooks, momentum None."""
    if not isinstance(model, torch.nn.Module):
        refuse(f"found a {type(model).__name__}, expected a torch.nn.Module")
    for path, module in model.named_modules():
        if isinstance(module, torch._dynamo.eval_frame.OptimizedModule) or module._compiled_call_impl is not None:
            refuse("has been through torch.compile, expected the module below it, as it was before", path)
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and module.track_running_stats and module.momentum is None:
            refuse("averages its running statistics over all batches (momentum=None), expected a momentum", path)
        for name, item in vars(module).items():
            if isinstance(item, torch.Tensor) and item.grad_fn is not None:
                hint = "torch.nn.utils.weight_norm has a successor in torch.nn.utils.parametrizations"
                refuse(f"keeps the result of an operation as {name}, expected it in forward ({hint})", path)
    for name, parameter in model.named_parameters():
        if parameter.dtype != torch.float32:
            refuse(f"the parameter {name} is {_word(parameter.dtype)}, expected float32 (model.float())")
        if parameter.device.type != "cpu":
            refuse(f"the parameter {name} lies on {parameter.device}, expected the CPU")
        if parameter._backward_hooks or parameter._post_accumulate_grad_hooks:
            refuse(f"the parameter {name} has a hook on its gradient, which a model file cannot hold")


def check_example(model: torch.nn.Module, inputs: tuple, labels: Any) -> None:
    """Refuses inputs and labels that are no batch, or none that data files hold and that the model takes."""
    named = [*((f"example input {place}", one) for place, one in enumerate(inputs)), ("labels", labels)]
    for name, item in named:
        if not isinstance(item, torch.Tensor) or item.dim() == 0:
            what = "a tensor without dimensions" if isinstance(item, torch.Tensor) else f"a {type(item).__name__}"
            refuse(f"found {what} as {name}, expected a tensor with the batch as its first dimension", whole=EXAMPLE)
        if item.dtype not in TYPES:
            refuse(f"found {name} of {_word(item.dtype)}, expected {', '.join(map(_word, TYPES))}, as data files hold them", whole=EXAMPLE)
    sizes = {item.shape[0] for _, item in named}
    if len(sizes) != 1 or sizes.pop() < SHORTEST_BATCH:
        refuse(f"example inputs and labels must hold the same batch, of at least {SHORTEST_BATCH} samples", whole=EXAMPLE)
    for name, item in named[:-1]:
        if item.is_floating_point() and item.isnan().any():
            refuse(f"found nan in {name}, expected numbers", whole=EXAMPLE)
    try:
        inspect.signature(model.forward).bind(*inputs)
    except TypeError as error:
        refuse(f"its forward does not take {len(inputs)} inputs by place ({error})")


def _word(dtype: torch.dtype) -> str:
    return str(dtype).rpartition(".")[2]
