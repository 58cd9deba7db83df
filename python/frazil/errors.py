"""What goes wrong, as the programs tell it: an exit code and one sentence."""

from typing import Any, Optional


class FrazilError(Exception):
    """One sentence, and the exit code that a program gave or would give (docs/commands.md lists them).

    `answer` is what a program answers all the same: a dict of `ask`, an answer of `plan` and `simulate`; None where there is none.
    `file`, `line`, `found` and `expected` are there for bad input, as far as they are known.
    """

    def __init__(self, sentence: str, code: int = 2, answer: Any = None, **place: Any):
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code
        self.answer = answer
        self.file: Optional[str] = place.get("file")
        self.line: Optional[int] = place.get("line")
        self.found: Optional[str] = place.get("found")
        self.expected: Optional[str] = place.get("expected")


class NotFeasible(FrazilError):
    """Exit code 3: nothing fits, or what was asked for does not; the answer says what is missing."""


class ExportRefused(FrazilError):
    """A model, its inputs or its loss that cannot be written to a model file; nothing has been written."""


def bad_input(file: Any, found: str, expected: str) -> FrazilError:
    """The error of a file, or of an argument, that is not as it must be."""
    return FrazilError(f"{file}: found {found}, expected {expected}", 2, file=str(file), found=found, expected=expected)
