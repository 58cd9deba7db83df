#!/usr/bin/env python3
"""A thread that cannot be started ends a subcommand with one sentence, exit code 7 for memory and 1 for a limit, never by a signal."""
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.environ.get("FRAZIL", str(TREE / "build/bin/frazil"))
NOBODY = 65534

RUN = {
    "format": "frazil.run",
    "version": 1,
    "model": {"dim": 16, "blocks": 2, "heads": 2},
    "data": {"kind": "synthetic", "train_samples": 64, "test_samples": 16},
    "epochs": 1,
    "batch_size": 16,
    "micro_batch_size": 4,
}
QUESTION = "profile --run run.json --devices 4 --rounds 1 --steps 2 --quiet"


def ask(folder, limit, question=QUESTION):
    answer = subprocess.run(
        [FRAZIL, *question.split()], cwd=folder, capture_output=True, text=True, preexec_fn=limit, timeout=300
    )
    return answer.returncode, answer.stderr.strip()


def limit_stacks():
    """Leaves no room for the stack of another thread, and room for everything else: libtorch itself may end by a
    signal where its own allocations fail."""
    resource.setrlimit(resource.RLIMIT_STACK, (64 << 30, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))


def limit_threads(most):
    def limit():
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
        if os.geteuid() == 0:  # the limit does not hold for root
            os.setgid(NOBODY)
            os.setuid(NOBODY)

    return limit


def is_of_the_system(said):
    """The loader's or OpenMP's own words, before or below Frazil."""
    return "error while loading shared libraries" in said or "libgomp" in said or "Permission denied" in said


def main():
    seen = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o777)
        (folder / "run.json").write_text(json.dumps(RUN))
        (folder / "run.json").chmod(0o644)
        told = False
        limits = [("stacks of 64 GiB within 16 GiB", limit_stacks)]
        limits += [(f"ulimit -u {n}", limit_threads(n)) for n in range(1, 6)]
        for name, limit in limits:
            code, said = ask(folder, limit)
            if code == 0 or is_of_the_system(said):
                continue
            if not said and ask(folder, limit, "profile --version")[0] != 0:
                continue  # the libraries do not even load
            is_told = "cannot start a thread: " in said
            told = told or is_told
            is_one = said.startswith("frazil profile: ") and "\n" not in said
            if not is_one or code not in (1, 7) or "terminate called" in said:
                print(f"{name}: exit code {code}: {said[:200]!r}")
                return 1
            if is_told:
                seen.append(f"{name}: exit code {code}, `{said}`")
    if not told:
        print("no limit was met at which a thread lacks here")
        return 77
    print(f"{len(seen)} limits told; first {seen[0]}; last {seen[-1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
