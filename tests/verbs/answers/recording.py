"""Runs the commands, each in a folder of its own, and writes down what each said and wrote."""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from answer_text import draw_content, draw_file, draw_part, list_files
from commands import VERBS
from filter_rules import is_left_out
from inputs import draw_json, write_inputs
from programs import TIME_LIMIT, run_line

COMMANDS_AT_ONCE = 2
RECORDING = "recording.json"  # tells the folders that a recording was made with


@dataclasses.dataclass(frozen=True)
class Places:
    """Folders that a recording is made with; none of them may show in a comparison."""

    programs: pathlib.Path
    scratch: pathlib.Path
    source: pathlib.Path
    shared: object  # a path, or None where none is read


def prepare_folder(places, name):
    """A folder for one command, with links to what no command should write."""
    folder = places.scratch / "work" / name
    folder.mkdir(parents=True)
    (folder / "in").symlink_to(places.scratch / "in")
    if places.shared:
        (folder / "shared").symlink_to(places.shared)
    return folder


def run_and_draw(places, folder, command, line):
    """What was asked, and the exit code or why there is none, standard output and standard error."""
    code, out, err = "", b"", b""
    with open(command.out or os.devnull, "wb") as sink:
        try:
            done = run_line(places.programs, line, folder, places.scratch, sink if command.out else subprocess.PIPE)
            code, out, err = str(done.returncode), done.stdout or b"", done.stderr
        except subprocess.TimeoutExpired:
            code = f"none within {TIME_LIMIT} s"
        except OSError as error:
            code = f"none: {error.strerror}"
    verb = title_of(command, line)
    parts = [("command", line + "\n"), ("exit code", code + "\n")]
    parts += [("stdout", draw_content(out)), ("stderr", draw_content(err))]
    return "".join(draw_part(f"{verb}: {what}", text) for what, text in parts)


def title_of(command, line):
    """Whose rules of the filter hold for what the line says."""
    words = shlex.split(line)
    program = pathlib.PurePath(words[0]).name
    verb = words[1] if len(words) > 1 and words[1] in VERBS else "frazil"
    if program.startswith("frazil-"):
        verb = program[len("frazil-") :]
    return verb + (", measuring" if command.measures else "")


def write_answer(places, out, command):
    folder = prepare_folder(places, command.name)
    parts = [run_and_draw(places, folder, command, line) for line in command.lines]
    title = title_of(command, command.lines[-1])
    parts += [draw_file(title, name, file) for name, file in list_files(folder) if not is_left_out(name)]
    shutil.rmtree(folder)
    answer = out / f"{command.name}.txt"
    answer.parent.mkdir(parents=True, exist_ok=True)
    answer.write_text("".join(parts))


def record_commands(places, out, commands):
    """Those that take times run after the others, one by one."""
    for alone, at_once in [(False, COMMANDS_AT_ONCE), (True, 1)]:
        chosen = [command for command in commands if command.alone == alone]
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            list(pool.map(lambda command: write_answer(places, out, command), chosen))


def write_inputs_read(places, out):
    """The inputs are an answer too, told at the end: programs made some, and must change none."""
    files = list_files(places.scratch / "in")
    told = [draw_file("inputs", name, file) for name, file in files if file.name != "frazil"]
    (out / "inputs.txt").write_text("".join(told))


def clear(out):
    """An earlier recording makes room; any other folder stays."""
    if out.exists() and any(out.iterdir()):
        if not (out / RECORDING).exists():
            sys.exit(f"answers: {out} holds no recording, and is not emptied for one")
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)


def pick(commands, only):
    names = [command.name for command in commands]
    doubled = {name for name in names if names.count(name) > 1}
    if doubled:
        sys.exit(f"answers: two commands are called {', '.join(sorted(doubled))}")
    return [command for command in commands if re.search(only, command.name)]


def write_places(places, out):
    told = {key: str(path) for key, path in dataclasses.asdict(places).items() if path}
    (out / RECORDING).write_text(draw_json(told) + "\n")


def read_places(folder):
    """[(name, path)], longest paths first: one may lie in another."""
    try:
        places = json.loads((folder / RECORDING).read_text())
    except OSError as error:
        sys.exit(f"answers: {folder} holds no recording: {error.strerror}")
    return sorted(places.items(), key=lambda place: -len(place[1]))


def record(options, commands):
    """Options are those of the command line."""
    chosen = pick(commands, options.only)
    out = options.out.resolve()
    clear(out)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="answers-") as scratch:
        folders = (options.programs, pathlib.Path(scratch), options.source)
        places = Places(*(folder.resolve() for folder in folders), options.shared and options.shared.resolve())
        write_places(places, out)
        profiles = (options.inputs or places.scratch / "fixed").resolve()
        write_inputs(places.scratch / "in", places.programs, places.source, profiles, trains=options.verb == "train")
        record_commands(places, out, chosen)
        write_inputs_read(places, out)
    print(f"{len(chosen)} commands in {time.monotonic() - started:.0f} s")
