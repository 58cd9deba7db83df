"""Sizes as polynomials in the batch size: 24, "n", ["*", 24, "n"], ["+", "n", 1], ["//", "n", 2]."""

from typing import Any

import sympy

from .refusals import refuse


def polynomial(size: Any, path: str = "", source: str = "") -> Any:
    """The polynomial of an int or of a SymInt; refuses a size that depends on more than one n, or on values."""
    if isinstance(size, int):
        return size
    expression = size.node.expr
    if any(str(symbol).startswith(("u", "zuf")) for symbol in expression.free_symbols):
        refuse("has a size that depends on the values of a tensor", path, source)
    if len(expression.free_symbols) > 1:
        refuse("has a size that depends on more than the batch size", path, source)
    return _from_expression(expression, path, source)


def _from_expression(expression: Any, path: str, source: str) -> Any:
    if expression.is_Integer:
        return int(expression)
    if expression.is_Symbol:
        return "n"
    parts = [_from_expression(part, path, source) for part in expression.args]
    if isinstance(expression, sympy.Add):
        return ["+", *parts]
    if isinstance(expression, sympy.Mul):
        return ["*", *parts]
    if isinstance(expression, sympy.Pow) and isinstance(parts[1], int) and parts[1] > 0:
        return ["*", *[parts[0]] * parts[1]]
    if type(expression).__name__ in ("FloorDiv", "CleanDiv") and isinstance(parts[1], int):
        return ["//", *parts]
    refuse(f"has the size {expression}, which is no polynomial in the batch size", path, source)
    return None


def evaluate(size: Any, n: Any) -> Any:
    """The value of a polynomial for a batch size, which may be symbolic."""
    if size == "n":
        return n
    if isinstance(size, int):
        return size
    values = [evaluate(part, n) for part in size[1:]]
    result = values[0]
    for value in values[1:]:
        result = {"+": lambda a, b: a + b, "*": lambda a, b: a * b, "//": lambda a, b: a // b}[size[0]](result, value)
    return result


def depends_on_batch(size: Any) -> bool:
    return not isinstance(size, int)
