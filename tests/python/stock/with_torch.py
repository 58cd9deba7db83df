"""What the tests beside stock PyTorch share: they run under the Python that has it, with one thread, in a folder of their own.

A Python without PyTorch is left for that of tests/interop/setup_torch.sh; without that the script is skipped.
"""

import os
import sys
import tempfile
import unittest
from pathlib import Path

TREE = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TREE / "tests/python/package"))
import frazil  # noqa: E402
from support import main  # noqa: E402

__all__ = ["TREE", "Stock", "frazil", "main", "torch"]

PYTHON = TREE / ".deps/torch-python/python"
try:
    import torch
except ImportError:
    if PYTHON.exists() and "FRAZIL_STOCK_PYTHON" not in os.environ:
        os.environ["FRAZIL_STOCK_PYTHON"] = "1"
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    print("skipped: found no PyTorch; tests/interop/setup_torch.sh fetches it")
    sys.exit(77)


class Stock(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch.set_num_threads(1)
        scratch = tempfile.TemporaryDirectory(prefix="stock-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.path = self.folder / "some.safetensors"
