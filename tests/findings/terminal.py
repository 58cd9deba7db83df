#!/usr/bin/env python3
# On a terminal, answers fit its width and marks have colours (not with NO_COLOR); elsewhere no byte changes, and help names the values of flags.
import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

FRAZIL = os.environ.get("FRAZIL", str(pathlib.Path(__file__).resolve().parents[2] / "build/bin/frazil"))
COMPARE = ("simulate --stages 4 --micro-batches 8 --compare --fits 5 --forward 1ms --backward-input 1ms "
           "--backward-weight 1ms").split()
COLOUR = re.compile("\x1b\\[[0-9;]*m")
VERBS = "profile plan cluster simulate train verify import export report ablate reproduce".split()


def run_on_terminal(arguments, columns, **environment):
    """What the command prints on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    inherited = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM")}
    process = subprocess.Popen([FRAZIL, *arguments], stdout=theirs, env={**inherited, "TERM": "xterm", **environment})
    os.close(theirs)
    printed = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:
            break
        if not more:
            break
        printed += more
    os.close(ours)
    process.wait(60)
    return printed.decode().replace("\r\n", "\n")


def find_complaint():
    plain = subprocess.run([FRAZIL, *COMPARE], capture_output=True, text=True, timeout=60).stdout
    if COLOUR.search(plain) or max(map(len, plain.splitlines())) < 80:
        return "the answer in a pipe is not whole and plain"
    wide = run_on_terminal(COMPARE, 200)
    if not COLOUR.search(wide):
        return "a terminal gets no colours"
    if COLOUR.sub("", wide) != plain:
        return "a wide terminal gets another text than a pipe"
    narrow = run_on_terminal(COMPARE, 64, NO_COLOR="1")
    if COLOUR.search(narrow):
        return "NO_COLOR is not honoured"
    longest = max(map(len, narrow.splitlines()))
    if longest > 64:
        return f"a terminal of 64 columns gets a line of {longest}"
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "l.csv"
        name = "x" * 300
        table.write_text(f"name,forward_ms,backward_ms,activation_kB,parameter_kB\na{name},1.25,2,8,8\nb(  (c) {name},1.25,2,8,8\n")
        rows = run_on_terminal(["import", "csv", str(table), "--out", str(table) + ".json"], 100, NO_COLOR="1").splitlines()
    shown = [row for row in rows if row.startswith(("ax", "b(")) and "1.250 ms" in row and "…x" in row and len(row) <= 100]
    if len(shown) != 2:
        return f"long names of layers cut off the figures beside them: {rows[2:5]}"
    for verb in VERBS:
        helped = subprocess.run([FRAZIL, verb, "--help"], capture_output=True, text=True, timeout=60)
        lines = [line for line in helped.stdout.splitlines() if re.match(r"  --[a-z-]+ arg\b", line)]
        if lines:
            return f"frazil {verb} --help says `{lines[0].strip()}`"
    return ""


try:
    for end in pty.openpty():
        os.close(end)
except OSError as error:
    print(f"skipped: no pseudo terminal here: {error}")
    sys.exit(77)
complaint = find_complaint()
print(complaint if complaint else "width and colours are those of the terminal; help names the values of flags")
sys.exit(1 if complaint else 0)
