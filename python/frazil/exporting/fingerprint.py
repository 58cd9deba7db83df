"""Which kernels compute here: what decides the last bits of a witness, in the words of the programs' own record of kernels."""

import json
import os
from pathlib import Path
from typing import Any, Optional

import torch

UNSET = "unset"
MKL = "MKL_CBWR"
WORTH_IT = 0.97  # another branch than the portable one is taken if it needs less of its time than this


def fingerprint(branch: str) -> dict:
    """The fingerprint of computations in this process, with MKL's kernels of this branch."""
    return {
        "torch": torch.__version__.partition("+")[0],
        "processor": _processor_fact("model name"),
        "vendor": _processor_fact("vendor_id"),
        "aten": torch.backends.cpu.get_cpu_capability(),
        "mkl": branch,
        "threads": torch.get_num_threads(),
    }


def branch_of_this_process() -> str:
    """The value of MKL_CBWR with which this process was started: MKL reads it once."""
    try:
        entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return os.environ.get(MKL, UNSET)
    started = dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)
    return started.get(MKL.encode(), UNSET.encode()).decode()


def branch_of_the_programs() -> str:
    """The branch that `frazil train` takes here: what the environment names, else the fastest that was found, else the portable one."""
    named = os.environ.get(MKL)
    return named or _kept_choice() or _portable_branch()


def _portable_branch() -> str:
    return "AVX2,STRICT" if _processor_fact("vendor_id") == "GenuineIntel" else "AVX2"


def _kept_choice() -> Optional[str]:
    """The fastest branch among the trials that the programs keep for this processor and this torch."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "frazil"
    for file in sorted(cache.glob("kernels-*.json")):
        try:
            choice = json.loads(file.read_text())
            if choice["for"] == _asked_for():
                return _fastest(choice["trials"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def _fastest(trials: list) -> Any:
    best = trials[0]
    for trial in trials:
        if trial["holds"] and (not best["holds"] or trial["time_ns"] < best["time_ns"] * WORTH_IT):
            best = trial
    return best["branch"]


def _asked_for() -> str:
    features = [flag for flag in _processor_fact("flags").split() if flag.startswith(("avx", "amx")) or flag in ("fma", "f16c", "sse4_2")]
    return f"{_processor_fact('model name')} ({' '.join(features)}), torch {torch.__version__.partition('+')[0]}"


def _processor_fact(key: str) -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    return next((line.partition(": ")[2] for line in lines if line.startswith(key) and ": " in line), "unknown")
