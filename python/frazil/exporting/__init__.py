"""Writes PyTorch models to model files (docs/model-file.md). The only part of the package that imports torch."""

from .export_model import export_model
from .keyed_mask import keyed_mask
from .refusals import ExportRefused

__all__ = ["ExportRefused", "export_model", "keyed_mask"]
