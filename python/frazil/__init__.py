"""Frazil from Python: plan and simulate pipelines, turn data sets and models into files, read what it trained.

Planning needs the programs alone (`FRAZIL_BIN` names their folder, else they are on PATH). PyTorch is needed for `export_model`,
`export_distillation` and `keyed_mask`, and for what is handed to `load_weights` and `export_predictions`; it is imported there and not before.
"""

import importlib
import importlib.util
from typing import Any

from .answers import Comparison, GraphCut, HeldPlan, PlannerComparison, PlanStep, RankedPlan, Ranking, Trajectory, WhatIf
from .dataset import export_data
from .derived import derive_network
from .errors import ExportRefused, FrazilError, NotFeasible
from .predictions import export_predictions
from .questions import ask, plan, simulate
from .sample_order import sample_order
from .shards import DataFiles
from .tensors import Tensor, read_tensors, write_tensors
from .version import VERSION as __version__
from .weights import load_weights

EXPORTING = ("export_distillation", "export_model", "keyed_mask")

__all__ = [
    "Comparison",
    "DataFiles",
    "ExportRefused",
    "FrazilError",
    "GraphCut",
    "HeldPlan",
    "NotFeasible",
    "PlanStep",
    "PlannerComparison",
    "RankedPlan",
    "Ranking",
    "Tensor",
    "Trajectory",
    "WhatIf",
    "__version__",
    "ask",
    "derive_network",
    "export_data",
    "export_predictions",
    "load_weights",
    "plan",
    "read_tensors",
    "sample_order",
    "simulate",
    "write_tensors",
]
if importlib.util.find_spec("torch"):
    __all__ += EXPORTING


def __getattr__(name: str) -> Any:
    if name not in EXPORTING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if importlib.util.find_spec("torch") is None:
        raise ImportError(f"frazil.{name} needs PyTorch: install frazil[export]")
    return getattr(importlib.import_module(".exporting", __name__), name)


def __dir__() -> list:
    return [*globals(), *EXPORTING]
