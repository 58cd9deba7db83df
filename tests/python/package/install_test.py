#!/usr/bin/env python3
"""The package installs into an empty environment without PyTorch, and plans there. Skipped where Python makes no
environment, or setuptools, which builds it, cannot be fetched."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import TREE, main

PROGRAM = """
import sys
import frazil
step = frazil.simulate(stages=2, micro_batches=2, schedule="1f1b", forward="1ms", backward="2ms")
frazil.export_data([([0.5], 1)], "data.safetensors")
try:
    frazil.export_model
except ImportError as error:
    print(frazil.__version__, step.makespan_ns, len(step._repr_html_()) > 1000, frazil.__file__, error)
"""


def run(*command, **more):
    return subprocess.run([str(one) for one in command], capture_output=True, text=True, timeout=120, **more)


class Installed(unittest.TestCase):
    def test_into_an_empty_environment_it_plans(self):
        with tempfile.TemporaryDirectory(prefix="install-") as name:
            folder = Path(name)
            python, pip = folder / "empty/bin/python", [sys.executable, "-m", "pip", "--python", folder / "empty/bin/python"]
            if run(sys.executable, "-m", "venv", "--without-pip", folder / "empty").returncode:
                self.skipTest("this Python makes no environment (venv is missing)")
            environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
            environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
            if run(*pip, "list", env=environment).returncode:
                self.skipTest("this Python has no pip of version 22.3 or newer")
            source = shutil.copytree(TREE / "python", folder / "python", ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
            installed = run(*pip, "install", "--no-deps", "--no-compile", source, env=environment)
            if installed.returncode and ("No matching distribution" in installed.stderr or "Could not find a version" in installed.stderr):
                self.skipTest("setuptools cannot be fetched")
            self.assertEqual(installed.returncode, 0, installed.stderr)
            told = run(python, "-c", PROGRAM, cwd=folder, env=environment)
            self.assertEqual(told.returncode, 0, told.stderr)
            version, makespan, is_shown, place, sentence = told.stdout.strip().split(" ", 4)
            self.assertEqual((makespan, is_shown), ("9000000", "True"))
            self.assertTrue(Path(place).is_relative_to(folder / "empty"), place)
            self.assertEqual(sentence, "frazil.export_model needs PyTorch: install frazil[export]")
            listed = run(*pip, "list", "--format", "freeze", env=environment).stdout
            self.assertIn(f"frazil=={version}", listed.split())
            self.assertNotIn("torch", listed)


if __name__ == "__main__":
    main()
