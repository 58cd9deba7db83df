"""The exporter of models, from PyTorch models to model files that compute the same bits.

All exports happen in this one process. Exit code 0 means that all holds, 1 that something does not, 77 that something was skipped, for a
reason that is printed.
"""

import importlib
import importlib.util
import sys
import unittest

SKIPPED = 77
CASES = ("bits", "structure", "refused", "losses", "witnesses", "masks", "reader", "trained", "distilled")


def main():
    for needed in ("torch", "filelock"):  # torch.export imports the latter
        if importlib.util.find_spec(needed) is None:
            print(f"skipped: {needed} is not there; tests/interop/setup_torch.sh fetches it")
            return SKIPPED
    loader = unittest.TestLoader()
    suite = unittest.TestSuite(loader.loadTestsFromModule(importlib.import_module(name)) for name in CASES)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if not result.wasSuccessful():
        return 1
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    if result.skipped:
        return SKIPPED
    from exported import has

    missing = [package for package in ("transformers", "peft") if not has(package)]
    for package in missing:
        print(f"skipped: the models of {package}, for it is not there; tests/interop/setup_torch.sh fetches it")
    return SKIPPED if missing else 0


sys.exit(main())
