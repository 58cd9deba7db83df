"""Makes a witness in a process of its own, under the settings that the programs use: one thread, MKL's kernels of one branch."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from .fingerprint import MKL, branch_of_the_programs, branch_of_this_process, fingerprint
from .refusals import ExportRefused
from .witness import Question, answer

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
COMMAND = "import sys; from frazil.exporting.witness_process import answer_file; answer_file(sys.argv[1])"


def make_witness(question: Question) -> tuple:
    """(fingerprint, cases). Asks a child process, unless this one was started with the branch that it would take.

    A model that cannot be handed to another process (its class stands in the script that runs, or inside a function) is run in this one;
    then the fingerprint names what this one was started with, and other bits are to be expected from the programs.
    """
    branch = branch_of_the_programs()
    mine = branch_of_this_process()
    if branch != mine and _can_travel(question):
        return _ask_child(question, branch)
    cases = answer(question)
    if branch != mine:
        print(
            f"frazil: the model's class cannot be imported by another process, so the witness has this process's last bits; "
            f"start with {MKL}={branch} for those of the programs",
            file=sys.stderr,
        )
    return {**fingerprint(mine), "threads": 1}, cases


def _can_travel(question: Question) -> bool:
    classes = {type(module) for module in question.model.modules()} | {type(question.loss)}
    names = [*classes, question.loss]
    return not any(getattr(one, "__module__", "") == "__main__" or "<" in getattr(one, "__qualname__", "") for one in names)


def _ask_child(question: Question, branch: str) -> tuple:
    with tempfile.TemporaryDirectory(prefix="frazil-witness-") as folder:
        file = Path(folder) / "question"
        torch.save(question, file)
        environment = {**os.environ, MKL: branch, **{name: "1" for name in THREADS}}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        child = subprocess.run([sys.executable, "-c", COMMAND, str(file)], env=environment, capture_output=True, text=True)
        if child.returncode != 0:
            lines = child.stderr.strip().splitlines()
            raise ExportRefused(f"the model cannot be run in a process of its own: {lines[-1] if lines else 'no message'}")
        return torch.load(file.with_suffix(".answer"), weights_only=False)


def answer_file(name: str) -> None:
    """Reads a question and writes (fingerprint, cases) beside it."""
    file = Path(name)
    question = torch.load(file, weights_only=False)
    cases = answer(question)
    torch.save(({**fingerprint(branch_of_this_process()), "threads": 1}, cases), file.with_suffix(".answer"))
