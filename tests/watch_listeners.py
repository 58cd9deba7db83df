#!/usr/bin/env python3
"""Runs a command and fails if, meanwhile, a program of this tree listened beyond the loopback.

usage: watch_listeners.py COMMAND...
Looks twenty times a second at the sockets of this network namespace. The exit code is the command's, or 1 if that was 0
and something listened; it is named with its address.
"""
import os
import pathlib
import subprocess
import sys
import time

TREE = str(pathlib.Path(__file__).resolve().parents[1]) + "/"
LOOK = 0.05
LISTENS = "0A"


def is_loopback(address):
    """Whether an address of /proc/net/tcp or tcp6, words of 4 bytes in the host's order, is of the loopback."""
    words = [bytes.fromhex(address[i:i + 8])[::-1] for i in range(0, len(address), 8)]
    raw = b"".join(words)
    if len(raw) == 4:
        return raw[0] == 127
    return raw == bytes(15) + b"\1" or (raw[:12] == bytes(10) + b"\xff\xff" and raw[12] == 127)


def listening():
    """Inode and address of what listens beyond the loopback."""
    found = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = pathlib.Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if words[3] == LISTENS and not is_loopback(words[1].split(":")[0]):
                found[words[9]] = words[1]
    return found


def owner(inode):
    """The program of this tree that has the socket, if one has."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            program = os.readlink(process / "exe")
            if not program.startswith(TREE) or "/.deps/" in program:
                continue
            for descriptor in (process / "fd").iterdir():
                if os.readlink(descriptor) == f"socket:[{inode}]":
                    return program
        except OSError:
            continue  # it has ended
    return None


def main():
    if len(sys.argv) < 2:
        print("watch_listeners.py: found no command, expected one", file=sys.stderr)
        return 2
    command = subprocess.Popen(sys.argv[1:])
    seen = set(listening())
    complaints = []
    while command.poll() is None:
        for inode, address in listening().items():
            if inode in seen:
                continue
            seen.add(inode)
            program = owner(inode)
            if program:
                complaints.append(f"{program} listened at {address}")
        time.sleep(LOOK)
    for complaint in complaints:
        print(f"watch_listeners.py: {complaint}, expected the loopback alone", file=sys.stderr)
    return command.returncode or (1 if complaints else 0)


sys.exit(main())
