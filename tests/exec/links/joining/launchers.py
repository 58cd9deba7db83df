#!/usr/bin/env python3
"""Processes that torchrun, elastic torchrun (also after a failure) and mpirun really launch join each other.

Each launcher runs in a network namespace of its own, where only the loopback is: what the launchers themselves listen at, all
addresses of the host, nobody reaches. Ends with code 77, and a reason, where the launcher or such a namespace cannot be had.

    launchers.py torchrun|elastic|restart|mpirun --program PROGRAM --python PYTHON
"""

import argparse
import fcntl
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

SKIPPED = 77
SECONDS = 90


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def enter_namespace():
    """Starts this script again in a network namespace, or skips it."""
    inside = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-n"]
    if shutil.which("unshare") is None or subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
        skip("found no right to make a network namespace")
    os.execvp(inside[0], [*inside, sys.executable, *sys.argv, "--inside"])


def raise_loopback():
    set_flags, up_loopback_running = 0x8914, 0x49
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh14x", b"lo", up_loopback_running))


def find_free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def run(commands, environment):
    """Runs the commands at once and returns what all of them printed; fails unless all end with code 0."""
    with tempfile.TemporaryFile() as output:
        started = [subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True) for command in commands]
        try:
            codes = [process.wait(timeout=SECONDS) for process in started]
        except subprocess.TimeoutExpired:
            codes = ["none in time"]
            for process in started:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    if any(codes):
        sys.exit(f"the launchers ended with codes {codes}:\n{text}")
    return text


def find_joined(text):
    return sorted(re.findall(r"process (\d) of (\d) joined \(start (\d)\)", text))


def check(text, expected):
    found = find_joined(text)
    if found != expected:
        sys.exit(f"found {found}, expected {expected} in:\n{text}")


def with_numbers(processes, start):
    return [(str(process), str(processes), str(start)) for process in range(processes)]


def check_torchrun(options, environment):
    torchrun = [options.python, "-m", "torch.distributed.run"]
    command = [*torchrun, "--standalone", "--no-python", "--nproc-per-node=2", options.program]
    check(run([command], environment), with_numbers(2, 0))


def elastic_agent(options, *arguments):
    torchrun = [options.python, "-m", "torch.distributed.run", "--nnodes=1:4", "--max-restarts=3", "--nproc-per-node=2"]
    meeting = ["--rdzv-backend=c10d", "--rdzv-id=elastic", f"--rdzv-endpoint=127.0.0.1:{find_free_port()}"]
    return [*torchrun, *meeting, "--rdzv-conf=last_call_timeout=3", "--monitor-interval=0.2", "--no-python", "--", options.program, *arguments]


def check_elastic(options, environment):
    """Two agents, each with two processes."""
    agent = elastic_agent(options)
    check(run([agent, agent], environment), with_numbers(4, 0))


def check_restart(options, environment):
    """A process fails once all have joined: all are started again, and join again."""
    text = run([elastic_agent(options, "fail-first")], environment)
    check(text, sorted(with_numbers(2, 0) + with_numbers(2, 1)))


def check_mpirun(options, environment):
    command = ["mpirun", "--oversubscribe", "-np", "3", options.program]
    allowed = {**environment, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    check(run([command], allowed), with_numbers(3, 0))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("launcher", choices=["torchrun", "elastic", "restart", "mpirun"])
    parser.add_argument("--program", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--inside", action="store_true")
    options = parser.parse_args()
    if options.launcher == "mpirun" and shutil.which("mpirun") is None:
        skip("found no mpirun")
    if options.launcher != "mpirun" and not pathlib.Path(options.python).exists():
        skip(f"found no {options.python}; tests/interop/setup_torch.sh makes it")
    if not options.inside:
        enter_namespace()
    raise_loopback()
    checks = {"torchrun": check_torchrun, "elastic": check_elastic, "restart": check_restart, "mpirun": check_mpirun}
    with tempfile.TemporaryDirectory() as folder:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "OMPI_", "PMI", "TORCHELASTIC_"))}
        checks[options.launcher](options, {**kept, "XDG_RUNTIME_DIR": folder, "OMP_NUM_THREADS": "1"})
        left = [path.name for path in pathlib.Path(folder).glob("frazil-*")]
    if left:
        sys.exit(f"found {left} left behind, expected nothing")


if __name__ == "__main__":
    main()
