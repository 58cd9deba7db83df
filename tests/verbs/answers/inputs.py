"""The folder of files that commands read."""

import json
import pathlib
import shutil
import sys

from broken_files import write_broken
from foreign_files import write_foreign
from model_files import write_models
from plan_files import write_plans
from programs import run_line
from run_folders import write_broken_run_folder, write_run_folders
from tiny_files import write_tiny


def draw_json(value, depth=0):
    """JSON with a line for each member, and for each item that is an object or long."""
    flat = json.dumps(value)
    if not isinstance(value, (dict, list)) or (isinstance(value, list) and len(flat) < 60):
        return flat
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    pairs = value.items() if isinstance(value, dict) else [(None, item) for item in value]
    items = [(f"{json.dumps(key)}: " if key else "") + draw_json(item, depth + 1) for key, item in pairs]
    pad = "\n" + " " * (depth + 1)
    return opened + pad + ("," + pad).join(items) + pad[:-1] + closed


class Inputs:
    """Files by their names in the folder, and the programs that make some of them."""

    def __init__(self, folder: pathlib.Path, programs: pathlib.Path):
        self.folder = folder
        self.programs = programs
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, name):
        return self.folder / name

    def read(self, name):
        return self.path(name).read_text()

    def write(self, name, content):
        """A text, or what is written as JSON."""
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_text(content if isinstance(content, str) else draw_json(content) + "\n")

    def make(self, line):
        """Runs `frazil` in the folder; it has to end with 0."""
        done = run_line(self.programs, f"frazil {line}", self.folder, scratch=self.folder)
        if done.returncode != 0:
            sys.exit(f"answers: an input could not be made: frazil {line}\n{done.stderr.decode()}")


def write_inputs(folder, programs, source, profiles, trains):
    """All files, or only those for training runs; `profiles` is the folder of write_profiles."""
    inputs = Inputs(folder, programs)
    write_tiny(inputs, source, profiles)
    if trains:
        return
    write_models(inputs)
    write_foreign(inputs)
    write_plans(inputs)
    write_run_folders(inputs)
    write_broken(inputs)
    write_broken_run_folder(inputs)
    inputs.path("alone").mkdir()
    shutil.copy(programs / "frazil", inputs.path("alone/frazil"))
