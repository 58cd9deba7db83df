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
import importlib.metadata
import frazil
step = frazil.simulate(stages=2, micro_batches=2, schedule="1f1b", forward="1ms", backward="2ms")
frazil.export_data([([0.5], 1)], "data.safetensors")
packages = sorted(one.metadata["Name"] + "==" + one.version for one in importlib.metadata.distributions())
try:
    frazil.export_model
except ImportError as error:
    print(",".join(packages), frazil.__version__, step.makespan_ns, len(step._repr_html_()) > 1000, frazil.__file__, error)
"""
PIP = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_COMPILE": "1", "PIP_NO_DEPS": "1"}


def run(*command, **more):
    return subprocess.run([str(one) for one in command], capture_output=True, text=True, check=False, **more)


def takes_python():
    """Whether pip installs into the environment of another Python, as from version 22.3 on."""
    try:
        import pip
    except ImportError:
        return False
    return tuple(map(int, pip.__version__.split(".")[:2])) >= (22, 3)


class Installed(unittest.TestCase):
    def test_into_an_empty_environment_it_plans(self):
        with tempfile.TemporaryDirectory(prefix="install-") as name:
            folder = Path(name)
            python = folder / "empty/bin/python"
            if run(sys.executable, "-m", "venv", "--without-pip", folder / "empty").returncode:
                self.skipTest("this Python makes no environment (venv is missing)")
            if not takes_python():
                self.skipTest("this Python has no pip of version 22.3 or newer")
            environment = {**{key: value for key, value in os.environ.items() if key != "PYTHONPATH"}, **PIP}
            source = shutil.copytree(TREE / "python", folder / "python", ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
            installed = run(sys.executable, "-m", "pip", "--python", python, "install", source, env=environment)
            if "No matching distribution found for setuptools" in installed.stderr:
                self.skipTest("setuptools cannot be fetched")
            self.assertEqual(installed.returncode, 0, installed.stderr)
            told = run(python, "-c", PROGRAM, cwd=folder, env=environment)
            self.assertEqual(told.returncode, 0, told.stderr)
            packages, version, makespan, is_shown, place, sentence = told.stdout.strip().split(" ", 5)
            self.assertEqual((packages, makespan, is_shown), (f"frazil=={version}", "9000000", "True"))
            self.assertTrue(Path(place).is_relative_to(folder / "empty"), place)
            self.assertEqual(sentence, "frazil.export_model needs PyTorch: install frazil[export]")


if __name__ == "__main__":
    main()
