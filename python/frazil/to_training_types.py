"""The two types that inputs and labels have in training: int64 and float32."""

from typing import Any

from .tensors import Tensor, make_tensor, pack_numbers

FLOATS = ("F64", "F16", "BF16")


def to_training_type(value: Any) -> Tensor:
    """A Tensor of int64 or float32: integers and truth values are widened, other floats rounded to the nearest float32.

    Raises TypeError at what is no number, OverflowError at an integer or a float that is out of range.
    """
    if hasattr(value, "is_floating_point") and not value.is_complex():
        value = value.float() if value.is_floating_point() else value.long()
    elif hasattr(value, "astype") and value.dtype.kind in "biuf":
        if value.dtype.name == "uint64":
            raise OverflowError("uint64 does not fit into int64")
        value = value.astype("<f4" if value.dtype.kind == "f" else "<i8")
    tensor = make_tensor(value)
    if tensor.kind in ("I64", "F32"):
        return tensor
    kind, code = ("F32", "f") if tensor.kind in FLOATS else ("I64", "q")
    numbers = tensor.numbers()
    return Tensor(kind, tensor.shape, pack_numbers(code, numbers))
