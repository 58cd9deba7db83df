"""What the exporter must know of single operations: which draw random numbers, change their operands, or mix samples."""

from dataclasses import replace
from typing import Any

import torch

from .program import Node, Value, flatten
from .refusals import refuse
from .sizes import depends_on_batch

# Each draws as many numbers as its input has elements, and a mask by key can stand for them.
DROPOUTS = ("dropout", "dropout_", "feature_dropout", "feature_dropout_", "native_dropout")
ATTENTION = "scaled_dot_product_attention"
RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
# Their generator decides more than the values of one tensor.
WITHOUT_KEY = ("rrelu", "rrelu_", "rrelu_with_noise", "randperm", "multinomial")
ASSERTIONS = ("_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range", "sym_constrain_range_for_size")
NORMALISATIONS = ("batch_norm", "_native_batch_norm_legit", "native_batch_norm", "cudnn_batch_norm", "instance_norm")
TRAINING = ("training", "use_input_stats")  # of normalisations: whether they take the statistics of their input
REDUCTIONS = (
    *("sum", "mean", "prod", "var", "std", "var_mean", "std_mean", "amax", "amin", "max", "min", "argmax", "argmin", "any", "all", "norm"),
    *("softmax", "log_softmax", "logsumexp", "cumsum", "cumprod", "sort", "topk", "median", "mode", "flip", "roll", "linalg_vector_norm"),
)


def base_name(operation: Any) -> str:
    """ "add" of aten::add.Tensor."""
    return operation._schema.name.partition("::")[2]


def qualified_name(operation: Any) -> str:
    """ "aten::add.Tensor"; without a dot where the overload has no name."""
    schema = operation._schema
    return schema.name + (f".{schema.overload_name}" if schema.overload_name else "")


def argument(operation: Any, arguments: list, keywords: dict, name: str) -> Any:
    """The argument of this name, or its default."""
    for position, formal in enumerate(operation._schema.arguments):
        if formal.name == name:
            return arguments[position] if position < len(arguments) else keywords.get(name, formal.default_value)
    return None


def has_argument(operation: Any, name: str) -> bool:
    return any(formal.name == name for formal in operation._schema.arguments)


def draws(operation: Any, arguments: list, keywords: dict, path: str, source: str) -> bool:
    """Whether the operation draws random numbers. Refuses what draws them without a key."""
    if torch.Tag.nondeterministic_seeded not in operation.tags:
        return False
    name = base_name(operation)
    if name in DROPOUTS:
        return True
    if name == ATTENTION:
        return bool(argument(operation, arguments, keywords, "dropout_p"))
    if name in RECURRENT and argument(operation, arguments, keywords, "dropout") == 0:
        return False
    if name in RECURRENT:
        refuse(f"draws random numbers inside {name} (dropout between its layers), where no key reaches; expected lstm or gru", path, source)
    if name in WITHOUT_KEY or not has_argument(operation, "generator"):
        refuse(f"calls {qualified_name(operation)}, which draws random numbers without a key", path, source)
    return True


def flags_of(operation: Any) -> tuple:
    """The arguments that say whether the operation trains, or how it does; the reader of a file sets the former."""
    name = base_name(operation)
    kinds = ((DROPOUTS, ("p", "train")), ((ATTENTION,), ("dropout_p",)), (NORMALISATIONS, TRAINING), (RECURRENT, ("train",)))
    return next((flags for names, flags in kinds if name in names), ())


def is_training(node: Any) -> bool:
    """Whether the operation drops something, or normalises by statistics of the batch although it is given running ones."""
    given = lambda name: argument(node.operation, node.arguments, node.keywords, name)  # noqa: E731
    name = base_name(node.operation)
    if name in DROPOUTS:
        return bool(given("train") and given("p"))
    if name == ATTENTION:
        return bool(given("dropout_p"))
    return name in NORMALISATIONS and given("running_mean") is not None and any(given(flag) for flag in TRAINING)


def in_evaluation(node: Node) -> Node:
    """The node as the reader of a file has it in evaluation: a normalisation that is given running statistics takes those."""
    if base_name(node.operation) not in NORMALISATIONS or not is_training(node):
        return node
    names = [formal.name for formal in node.operation._schema.arguments]
    arguments = [False if name in TRAINING else item for name, item in zip(names, node.arguments)]
    keywords = {name: False if name in TRAINING else item for name, item in node.keywords.items()}
    return replace(node, arguments=arguments, keywords=keywords)


def without_dropout(operation: Any, arguments: list) -> list:
    """The arguments with a rate of 0 where the operation drops something."""
    rate = {**dict.fromkeys(DROPOUTS, "p"), ATTENTION: "dropout_p"}.get(base_name(operation))
    return [0.0 if formal.name == rate else item for formal, item in zip(operation._schema.arguments, arguments)]


def changed_values(operation: Any, arguments: list, keywords: dict) -> list:
    """The values among the arguments that the operation changes, those of `out=` too."""
    formals = [formal for formal in operation._schema.arguments if formal.alias_info is not None and formal.alias_info.is_write]
    items = flatten([argument(operation, arguments, keywords, formal.name) for formal in formals])
    return [item for item in items if isinstance(item, Value)]


def aliased(operation: Any) -> list:
    """Positions of the arguments of which an output may be a view."""
    return [position for position, formal in enumerate(operation._schema.arguments) if formal.alias_info is not None]


def mixes_samples(node: Any) -> bool:
    """Whether an output of a node may depend on other samples of the batch than its own, as far as its name and its sizes tell."""
    name = base_name(node.operation)
    if name in NORMALISATIONS:
        return any(argument(node.operation, node.arguments, node.keywords, flag) for flag in TRAINING)
    if name not in REDUCTIONS or not node.reads():
        return False
    shape = node.reads()[0].shape
    dimensions = argument(node.operation, node.arguments, node.keywords, "dim")
    if dimensions is None:
        dimensions = argument(node.operation, node.arguments, node.keywords, "dims")
    if dimensions is None or dimensions == []:
        return any(depends_on_batch(size) for size in shape)
    dimensions = dimensions if isinstance(dimensions, (list, tuple)) else [dimensions]
    return any(depends_on_batch(shape[dimension]) for dimension in dimensions if isinstance(dimension, int) and shape)
