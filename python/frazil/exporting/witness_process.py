"""Makes a witness in a process of its own, under the settings that the programs use: one thread, MKL's kernels of one branch."""

import os
import re
import runpy
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import Any, Optional

import torch

from ..errors import ExportRefused
from .capture import first_line
from .fingerprint import MKL, branch_of_the_programs, branch_of_this_process, fingerprint
from .witness import Question, answer

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
COMMAND = "import sys; from frazil.exporting.witness_process import answer_file; answer_file(*sys.argv[1:])"
GUARD = re.compile(r"""^if\s+__name__\s*==\s*["']__main__["']\s*:""", re.MULTILINE)


def make_witness(question: Question) -> tuple:
    """(fingerprint, cases). Asks a child process, unless this one was started with the branch that it would take.

    What stands in the script that runs is imported from there, as multiprocessing does, if the script does its work behind
    `if __name__ == "__main__":`. A model that cannot be handed to another process (its class or its loss stands in a script without that, or
    inside a function, or it cannot be pickled) is run in this one; then the fingerprint names what this one was started with, and other bits
    are to be expected from the programs.
    """
    branch = branch_of_the_programs()
    mine = branch_of_this_process()
    if branch != mine:
        try:
            _expect_names(question)
            return _ask_child(question, branch)
        except _StaysHere as why:
            cases = answer(question)
            print(
                f"frazil: {why}, or start with {MKL}={branch}: the model could not be handed to another process, so the witness has the last "
                "bits of this one, which may not be those of the programs",
                file=sys.stderr,
            )
            return {**fingerprint(mine), "threads": 1}, cases
    return {**fingerprint(mine), "threads": 1}, answer(question)


class _StaysHere(Exception):
    """The model or its loss cannot be handed to another process; says what helps."""


def _expect_names(question: Question) -> None:
    """Raises _StaysHere where another process cannot import a class of the model, or the loss, by its name."""
    named = [(f"the class {type(module).__name__}", type(module)) for module in question.model.modules()]
    for what, one in [*named, ("the loss", question.loss), ("the loss", type(question.loss))]:
        if "<" in getattr(one, "__qualname__", ""):
            raise _StaysHere(f"define {what} by a name of its own in a module, neither as a lambda nor inside a function")
        if getattr(one, "__module__", "") == "__main__" and _guarded_script() is None:
            raise _StaysHere('put what the script does behind `if __name__ == "__main__":`')


def _guarded_script() -> Optional[str]:
    """The script that runs, if importing it does nothing but define."""
    path = getattr(sys.modules["__main__"], "__file__", None)
    try:
        return path if path and GUARD.search(Path(path).read_text()) else None
    except (OSError, UnicodeDecodeError):
        return None


def _ask_child(question: Question, branch: str) -> tuple:
    with tempfile.TemporaryDirectory(prefix="frazil-witness-") as folder:
        file = Path(folder) / "question"
        try:
            torch.save(question, file)
        except Exception as error:  # pickle raises errors of many kinds
            raise _StaysHere(f"make the model one that pickle takes ({first_line(error)})") from None
        environment = {**os.environ, MKL: branch, **{name: "1" for name in THREADS}}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        script = [os.path.abspath(path)] if (path := _guarded_script()) else []
        child = subprocess.run([sys.executable, "-c", COMMAND, str(file), *script], env=environment, capture_output=True, text=True)
        if child.returncode != 0:
            lines = child.stderr.strip().splitlines()
            raise _StaysHere(f"make the model one that another process can load ({lines[-1] if lines else 'no message'})")
        found = torch.load(file.with_suffix(".answer"), weights_only=False)
        if isinstance(found, str):
            raise ExportRefused(found)
        return found


def answer_file(name: str, script: str = "") -> None:
    """Reads a question and writes (fingerprint, cases), or why it is refused, beside it. What it names in the asking process's script is
    taken from there."""
    if script:
        main = types.ModuleType("__mp_main__")
        sys.modules["__mp_main__"] = sys.modules["__main__"] = main
        main.__dict__.update(runpy.run_path(script, run_name="__mp_main__"))
    file = Path(name)
    question = torch.load(file, weights_only=False)
    try:
        found: Any = ({**fingerprint(branch_of_this_process()), "threads": 1}, answer(question))
    except ExportRefused as error:
        found = str(error)
    torch.save(found, file.with_suffix(".answer"))
