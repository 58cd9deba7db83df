"""Writes PyTorch models to model files (docs/model-file.md). The only part of the package that imports torch."""

from ..errors import ExportRefused
from .distillation import export_distillation
from .export_model import export_model
from .keyed_mask import keyed_mask

__all__ = ["ExportRefused", "export_distillation", "export_model", "keyed_mask"]
