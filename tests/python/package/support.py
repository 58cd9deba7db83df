"""What tests of the package share: small inputs for the programs, and an exit code that counts skipped tests."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TREE = Path(__file__).resolve().parents[3]
LAYERS = """name,forward_ms,backward_ms,activation_kB,parameter_kB
embed,1,2,64,{0}
attention,4,8,64,{1}
mlp,6,12,64,{2}
head,1,2,4,{3}
"""
CLUSTER = {
    "format": "frazil.cluster",
    "version": 1,
    "hosts": [{"name": "host0", "memory_bytes": 8589934592}],
    "devices": [
        {"name": "a", "host": "host0", "memory_limit_bytes": 1048576},
        {"name": "b", "host": "host0", "memory_limit_bytes": 1048576, "time_ppm": 1500000},
    ],
    "default_link": {"latency_ns": 20000, "bandwidth_bytes_per_second": 1000000000},
}


def run_frazil(verb, *words):
    """The program itself, without the package: exit code, answer, what it complained of."""
    command = [Path(os.environ["FRAZIL_BIN"]) / "frazil", verb, *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    return done.returncode, json.loads(done.stdout), done.stderr


class WithFolder(unittest.TestCase):
    """A test with a folder of its own that holds `small.json`, `big.json` (which fits nowhere) and `pair.json`."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="package-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        for name, sizes in (("small", (16, 48, 96, 8)), ("big", (1600, 4800, 9600, 800))):
            table = self.folder / f"{name}.csv"
            table.write_text(LAYERS.format(*sizes))
            run_frazil("import", "csv", table, "--micro-batch-size", 4, "--model", name, "--out", self.folder / f"{name}.json")
        (self.folder / "pair.json").write_text(json.dumps(CLUSTER))
        self.model, self.big, self.pair = (self.folder / f"{name}.json" for name in ("small", "big", "pair"))


def main():
    """Runs the tests of the script; exits with 77 if some were skipped and none failed."""
    result = unittest.main(exit=False, verbosity=1).result
    for test, reason in result.skipped:
        print(f"skipped {test.id()}: {reason}")
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
