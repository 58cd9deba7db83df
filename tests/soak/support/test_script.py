"""A test script that is a campaign by itself: what it said, and whether it failed."""
import pathlib
import subprocess
import sys

from campaign import ABSENT, Absent

PROCESSES = pathlib.Path(__file__).resolve().parents[2] / "exec" / "properties" / "processes"


def run_script(name, *arguments):
    """What tests/exec/properties/processes/`name` said, and 1 if something did not hold, else 0."""
    ended = subprocess.run([sys.executable, str(PROCESSES / name), *arguments], text=True, errors="replace",
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(ended.stdout, end="", flush=True)
    if ended.returncode == ABSENT:
        raise Absent(ended.stdout.strip())
    return ended.stdout, int(ended.returncode != 0)
