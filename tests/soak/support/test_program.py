"""A test of C++ that is a campaign by itself: what it said, and how many of its checks failed."""
import os
import pathlib
import subprocess

from campaign import Absent
from training import FRAZIL

TESTS = pathlib.Path(os.environ.get("FRAZIL_TESTS", pathlib.Path(FRAZIL).parent))


def run_test(program, test, environment):
    """The output of one test, or of a suite ("Suite.*"), and the number of failures that it told of, at least 1 if it did not pass."""
    path = TESTS / program
    if not path.exists():
        raise Absent(f"no {path}")
    ended = subprocess.run([str(path), f"--gtest_filter={test}"], env=environment, text=True, errors="replace",
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(ended.stdout, end="", flush=True)
    if ended.returncode == 0 and f"[       OK ] {test.rstrip('*')}" in ended.stdout:
        return ended.stdout, 0
    return ended.stdout, max(1, ended.stdout.count(": Failure"))
