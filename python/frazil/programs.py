"""The programs: where they lie, which flags they take, and what they answer.

They are looked for in the folder that the environment's FRAZIL_BIN names, else on PATH. Nothing here knows what an answer means.
"""

import functools
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from .errors import FrazilError, NotFeasible


@dataclass(frozen=True)
class Flag:
    """A flag as its program describes it: `kind` is the word for its value (`FILE`, `TIME`, `N`, ...), empty for a switch."""

    name: str
    kind: str
    values: tuple


def find_program(verb: Optional[str] = None) -> str:
    """The path of `frazil`, or of `frazil-VERB`, which lies beside it. Raises FrazilError if there is none."""
    folder = os.environ.get("FRAZIL_BIN")
    front = shutil.which("frazil", path=folder) if folder else shutil.which("frazil")
    if not front:
        place = f"in {folder}, which FRAZIL_BIN names" if folder else "on PATH"
        raise FrazilError(f"found no program frazil {place}, expected it there; FRAZIL_BIN names the folder of the built programs (build/bin)", 1)
    if verb is None:
        return front
    program = Path(front).resolve().parent / f"frazil-{verb}"
    if not os.access(program, os.X_OK):
        raise FrazilError(f"found no {program}, expected it beside frazil: build all programs", 1)
    return str(program)


def list_flags(verb: str) -> dict:
    """The flags of a verb by their names, as its program tells them."""
    program = find_program(verb)
    return _describe(program, os.stat(program).st_mtime_ns)


@functools.lru_cache(maxsize=None)
def _describe(program: str, _changed: int) -> dict:
    done = _run([program, "--describe-flags"])
    if done.returncode:
        raise FrazilError(f"{program} does not describe its flags: {done.stderr.strip()}", 1)
    told = json.loads(done.stdout)["flags"]
    return {flag["name"]: Flag(flag["name"], flag["value"], tuple(flag.get("values", ()))) for flag in told}


def run_program(verb: str, words: list) -> dict:
    """Runs `frazil-VERB WORDS... --json` and returns its answer.

    Raises FrazilError (with exit code 3 NotFeasible) with the program's exit code and sentence, and with its answer, if there is one.
    """
    done = _run([find_program(verb), *words, "--json"])
    answer = _read_answer(done.stdout)
    if done.returncode == 0 and answer is not None:
        return answer
    told = (answer or {}).get("error")
    kind, code = NotFeasible if done.returncode == 3 else FrazilError, done.returncode or 1
    if told:
        raise kind(told["sentence"], code, **{key: told.get(key) for key in ("file", "line", "found", "expected")})
    raise kind(_last_sentence(verb, done), code, answer)


def _run(command: list) -> subprocess.CompletedProcess:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", check=False)


def _read_answer(text: str) -> Optional[dict]:
    try:
        answer = json.loads(text)
    except json.JSONDecodeError:
        return None
    return answer if isinstance(answer, dict) else None


def _last_sentence(verb: str, done: subprocess.CompletedProcess) -> str:
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    own = [line for line in lines if line.startswith(f"frazil {verb}: ")]
    return (own or lines or [f"frazil {verb}: ended with exit code {done.returncode}"])[-1]
