"""The programs read the files: the tests of the reader in C++ go through all of them."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from exported import exported, samples

TESTS = os.environ.get("FRAZIL_IMPORTED_TESTS", "")


@unittest.skipUnless(TESTS and Path(TESTS).exists(), "the tests of the reader are not built: FRAZIL_IMPORTED_TESTS names none")
class Reader(unittest.TestCase):
    def test_computes_what_pytorch_has_computed(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for sample in samples():
                os.link(exported(sample).path, folder / f"{sample}.safetensors")
            done = subprocess.run(
                [TESTS, "--gtest_filter=ExportedModels.*", "--gtest_brief=1"],
                env={**os.environ, "FRAZIL_EXPORTED_MODELS": name}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"[1-9]\d* tests from 1 test suite ran")
        self.assertNotIn("SKIPPED", done.stdout)
        print(f"{len(samples())} models read in C++", flush=True)


if __name__ == "__main__":
    unittest.main()
