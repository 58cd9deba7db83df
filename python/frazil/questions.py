"""`plan` and `simulate`: the programs asked with keyword arguments, their answers as dataclasses."""

import json
import tempfile
from pathlib import Path
from typing import Any

from .answers import Comparison, GraphCut, HeldPlan, PlannerComparison, PlanStep, Ranking, Trajectory, WhatIf
from .answers.from_json import from_json
from .errors import NotFeasible
from .flags import make_words
from .picture import Picture
from .programs import run_program

SHOWN = ("profile", "cluster", "procs", "clip", "overlap_reductions")  # what the step of a plan follows from besides


def ask(verb: str, *words: Any, **flags: Any) -> dict:
    """Runs `frazil VERB WORDS... --json` with these flags and returns its JSON: `ask("cluster", devices=4, preset="l4", out="four.json")`.

    Flags are keyword arguments with underscores; see `frazil.flags` for what values may be. Raises FrazilError.
    """
    with tempfile.TemporaryDirectory(prefix="frazil-") as folder:
        return run_program(verb, [*map(str, words), *make_words(verb, flags, Path(folder))])


def plan(**flags: Any) -> Any:
    """Finds the best pipeline: `frazil plan` (docs/commands.md), its flags as keyword arguments.

    Answers with a Ranking; with `forecast` a Trajectory, with `held` a HeldPlan, with `planner` a PlannerComparison, with `graph` a GraphCut.
    The plan that was found is in the answer too, as a dict; `out` also writes it. Raises NotFeasible, with the ranking, where nothing fits.
    """
    with tempfile.TemporaryDirectory(prefix="frazil-") as name:
        out = Path(flags.get("out") or Path(name) / "plan.json")
        before = _stamp(out)
        words = make_words("plan", flags if flags.get("graph") else {**flags, "out": out}, Path(name))
        try:
            return _make_plan_answer(flags, run_program("plan", words), out, before)
        except NotFeasible as error:
            if not flags.get("out"):
                error.args = (error.sentence.partition("; --out ")[0],)
                error.sentence = error.args[0]
            if error.answer is not None:
                error.answer = _make_plan_answer(flags, error.answer, out, before)
            raise


def simulate(**flags: Any) -> Any:
    """Predicts a step: `frazil simulate` (docs/commands.md), its flags as keyword arguments.

    Answers with a PlanStep if there is a `plan`, else with a WhatIf; with `compare` with a Ranking or a Comparison.
    Raises NotFeasible, with the answer, where the step does not fit into memory.
    """
    try:
        return _make_step_answer(flags, ask("simulate", **flags))
    except NotFeasible as error:
        if error.answer is not None:
            error.answer = _make_step_answer(flags, error.answer)
        raise


def _make_plan_answer(flags: dict, answer: dict, out: Path, before: Any) -> Any:
    if flags.get("graph"):
        return from_json(GraphCut, answer)
    if flags.get("forecast"):
        return from_json(Trajectory, answer, plans=_read_plans(out, answer))
    found = _read_plan(out) if _stamp(out) != before else None
    picture = Picture({"plan": found, **{key: flags.get(key) for key in SHOWN}}) if found else None
    if flags.get("held"):
        return from_json(HeldPlan, answer, plan_file=found, picture=picture)
    if flags.get("planner"):
        return from_json(PlannerComparison, answer, plan=found, picture=picture)
    return from_json(Ranking, answer, plan=found, picture=picture)


def _make_step_answer(flags: dict, answer: dict) -> Any:
    if "compared" in answer:
        return from_json(Comparison, answer)
    if "candidates" in answer:
        return from_json(Ranking, answer)
    return from_json(PlanStep if flags.get("plan") else WhatIf, answer, picture=Picture(flags))


def _stamp(path: Path) -> Any:
    """What tells whether a file was written anew; files are written by rename."""
    return (path.stat().st_ino, path.stat().st_mtime_ns) if path.exists() else None


def _read_plan(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def _read_plans(out: Path, answer: dict) -> dict:
    """Plans of a forecast by the step from which on they are held: `plan.300.json` for `plan.json`."""
    steps = [0, *(switch["step"] for switch in answer["switches"])]
    paths = {step: out.with_name(f"{out.stem}.{step}{out.suffix}") for step in steps}
    return {step: _read_plan(path) for step, path in paths.items() if path.exists()}
