"""Makes a witness in a process of its own, under the settings that the programs use: one thread, MKL's kernels of one branch."""

import os
import re
import runpy
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import Optional

import torch

from ..errors import ExportRefused
from .fingerprint import MKL, branch_of_the_programs, branch_of_this_process, fingerprint
from .witness import Question, answer

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
COMMAND = "import sys; from frazil.exporting.witness_process import answer_file; answer_file(*sys.argv[1:])"
GUARD = re.compile(r"""^if\s+__name__\s*==\s*["']__main__["']\s*:""", re.MULTILINE)


def make_witness(question: Question) -> tuple:
    """(fingerprint, cases). Asks a child process, unless this one was started with the branch that it would take.

    What stands in the script that runs is imported from there, as multiprocessing does, if the script does its work behind
    `if __name__ == "__main__":`. A model that cannot be handed to another process (its class or its loss stands in a script without that, or
    inside a function) is run in this one; then the fingerprint names what this one was started with, and other bits are to be expected from
    the programs.
    """
    branch = branch_of_the_programs()
    mine = branch_of_this_process()
    if branch != mine and _can_travel(question):
        return _ask_child(question, branch)
    cases = answer(question)
    if branch != mine:
        print(
            f"frazil: the model's class or its loss cannot be imported by another process, so the witness has this process's last bits; "
            f'put what the script does behind `if __name__ == "__main__":`, or start with {MKL}={branch}, for those of the programs',
            file=sys.stderr,
        )
    return {**fingerprint(mine), "threads": 1}, cases


def _can_travel(question: Question) -> bool:
    classes = {type(module) for module in question.model.modules()} | {type(question.loss)}
    names = [*classes, question.loss]
    if any("<" in getattr(one, "__qualname__", "") for one in names):
        return False
    return _guarded_script() is not None or not any(getattr(one, "__module__", "") == "__main__" for one in names)


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
        torch.save(question, file)
        environment = {**os.environ, MKL: branch, **{name: "1" for name in THREADS}}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        script = [os.path.abspath(path)] if (path := _guarded_script()) else []
        child = subprocess.run([sys.executable, "-c", COMMAND, str(file), *script], env=environment, capture_output=True, text=True)
        if child.returncode != 0:
            lines = child.stderr.strip().splitlines()
            raise ExportRefused(f"the model cannot be run in a process of its own: {lines[-1] if lines else 'no message'}")
        return torch.load(file.with_suffix(".answer"), weights_only=False)


def answer_file(name: str, script: str = "") -> None:
    """Reads a question and writes (fingerprint, cases) beside it. What it names in the asking process's script is taken from there."""
    if script:
        main = types.ModuleType("__mp_main__")
        sys.modules["__mp_main__"] = sys.modules["__main__"] = main
        main.__dict__.update(runpy.run_path(script, run_name="__mp_main__"))
    file = Path(name)
    question = torch.load(file, weights_only=False)
    cases = answer(question)
    torch.save(({**fingerprint(branch_of_this_process()), "threads": 1}, cases), file.with_suffix(".answer"))
