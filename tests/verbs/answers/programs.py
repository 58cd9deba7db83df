"""Runs a program as a recording does: without input, and in an environment without surprises."""

import os
import shlex
import subprocess

TIME_LIMIT = 120  # seconds for one command


def run_line(programs, line, folder, scratch, sink=subprocess.PIPE):
    """The line's program, unless it has a path, lies in `programs`; its temporary files go to `scratch`."""
    words = shlex.split(line)
    if "/" not in words[0]:
        words[0] = str(programs / words[0])
    kept = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME")}
    return subprocess.run(
        words,
        cwd=folder,
        env={**kept, "LC_ALL": "C", "TZ": "UTC", "TMPDIR": str(scratch)},
        stdin=subprocess.DEVNULL,
        stdout=sink,
        stderr=subprocess.PIPE,
        timeout=TIME_LIMIT,
    )
