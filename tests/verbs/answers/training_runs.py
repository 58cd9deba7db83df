"""Training runs: of each schedule, each way of freezing, the cache, going on from checkpoints, and others."""

import dataclasses

from commands import Command
from plan_files import SCHEDULES

TINY = {"image": 8, "channels": 1, "patch": 2, "dim": 16, "blocks": 3, "heads": 2, "classes": 10}
HIERARCHY = {
    "model": {"image": 3, "channels": 8, "patch": 1, "dim": 16, "blocks": 2, "heads": 2, "classes": 8},
    "data": {
        "kind": "random-hierarchy", "levels": 3, "symbols": 8, "synonyms": 4, "branching": 2,
        "train_samples": 300, "test_samples": 60, "seed": 1, "validation_percent": 10,
    },
}
SYNTHETIC = {"kind": "synthetic", "train_samples": 96, "test_samples": 32, "seed": 5}
SGD = {"kind": "sgd", "learning_rate": 0.05, "weight_decay": 0.01, "momentum": 0.8, "cosine": False}
CLIPPED = {"kind": "adamw", "learning_rate": 0.002, "clip_norm": 0.5, "warm_up_steps": 3}


def freeze(kind, decorators=None, **policy):
    """What stands in "freeze"."""
    return {"policy": {"kind": kind, **policy}, **({"decorators": decorators} if decorators else {})}


DECORATORS = {"hysteresis": {"steps": 1}, "prefix": True, "minimum_interval": {"steps": 3}}
GUARD = {"validation_guard": {"metric": "loss", "sigmas": 0, "tolerance": 0.001, "hold_evaluations": 1}}
FREEZING = {
    "static": freeze("static", frozen_layers=2),
    "alpha": freeze("alpha", alpha=0.5, start_step=2, interval_steps=3),
    "pt-paper": freeze("pt-paper", alpha=0.4, start_step=1, interval_steps=2),
    "autofreeze": freeze("autofreeze", percentile=60, interval_steps=3),
    "linear": freeze("linear", freeze_start=0.2, freeze_level=0.8, interval_steps=2),
    "freezeout": freeze("freezeout", t0=0.3, power=3, scaled=True),
    "plasticity": freeze("plasticity", tolerance=0.9, patience=1, smoothing=1, start_step=2, interval_steps=2),
    "gradual-unfreeze": freeze("gradual-unfreeze", interval_steps=3),
    "random": freeze("random", active_layers=1, interval_steps=3),
    "trace": freeze("trace", path="tiny-freeze.jsonl"),
    "decorated": freeze("random", DECORATORS, active_layers=1, embedding_active=False, interval_steps=4),
    "guarded": freeze("alpha", GUARD, alpha=0.6, start_step=1, interval_steps=2),
}
STATIC, ALPHA = {"freeze": FREEZING["static"]}, {"freeze": FREEZING["alpha"]}


@dataclasses.dataclass(frozen=True)
class Run:
    """A training run: what its configuration has in place of tiny.json's, its plan and flags."""

    name: str
    changes: dict = dataclasses.field(default_factory=dict)
    plan: str = ""  # tiny-PLAN.json; none: the planner's choice
    flags: str = "--steps 6"
    cluster: str = "duo"
    model: str = "tiny"
    again: tuple = ()  # flags of runs that follow in the same folder

    def command(self):
        plan = f"--plan in/tiny-{self.plan}.json" if self.plan else ""
        asked = (
            f"frazil train --run in/run-{self.name}.json --profile in/{self.model}-model.json "
            f"--cluster in/{self.cluster}.json {plan} --quiet --json --out out"
        )
        lines = tuple(f"{asked} {flags}" for flags in (self.flags, *self.again))
        return Command(f"train-run/{self.name}", lines, measures=True)


def list_schedule_runs():
    """Each schedule, every other one with something frozen, which it has to go on with.

    The fourth step is the first whose time line is kept.
    """
    for number, name in enumerate(SCHEDULES):
        yield Run(name, ALPHA if number % 2 else {}, name, "--steps 5 --keep-plan")


def list_freezing_runs():
    data = {"epochs": 5, "data": {**SYNTHETIC, "validation_percent": 20}}
    for name, freezing in FREEZING.items():
        yield Run(f"freeze-{name}", {"freeze": freezing, **data}, flags="", cluster="duo-tight")


def list_cache_runs():
    always = {"kind": "on", "admission": "always"}
    frozen = {"epochs": 3, "data": SYNTHETIC, **STATIC}
    shifted = {"augmentation": {"kind": "shift", "pixels": 1, "variants": 2}}
    for name, changes in [
        ("cache", {"cache": always}),
        ("cache-checked", {"cache": {**always, "check": True}, **ALPHA}),
        ("cache-predicted", {"cache": {"kind": "on"}}),
        ("cache-rounded", {"cache": {**always, "precision": "bfloat16"}}),
        ("cache-on-disk", {"cache": {**always, "memory_bytes": 0, "disk_bytes": 1 << 28}}),
        ("cache-variants", {"cache": always, **shifted}),
    ]:
        yield Run(name, {**frozen, **changes}, flags="")
    in_part = {**always, "memory_bytes": 50_000}  # of two pipelines the faster one's samples find room
    yield Run("cache-in-part", {**frozen, "cache": in_part}, "alone", "--keep-plan")


def list_durable_runs():
    durable = "--steps 10 --checkpoint-every 4"
    resumed = (f"{durable} --resume --plan in/tiny-replicas.json", f"{durable} --resume --seed 9")
    yield Run("checkpoints", ALPHA, "1f1b", durable, again=(f"{durable} --resume",))
    yield Run("other-plan-resumes", flags=f"{durable} --plan in/tiny-1f1b.json", again=resumed)


def list_other_runs():
    for name in ("replicas", "alone", "lists"):
        yield Run(name, plan=name)
    for name in ("two-by-two", "unequal", "shared"):
        yield Run(name, plan=name, cluster="quad")
    for name in ("samples", "fast"):
        yield Run(name, {"reduction": "fast"}, name, cluster="quad")
    yield Run("fast-clipped", {"reduction": "fast", "optimizer": CLIPPED}, "fast", cluster="quad")
    yield Run("fast-freezing", {"reduction": "fast", **ALPHA}, flags="--steps 9")
    yield Run("recompute", {"model": {**TINY, "dropout": 0.1}}, "recompute")
    yield Run("dispatched", plan="fifo")
    yield Run("clip", {"optimizer": CLIPPED}, "two-by-two", cluster="quad")
    yield Run("sgd", {"optimizer": SGD}, "1f1b")
    yield Run("dropout", {"model": {**TINY, "dropout": 0.2}}, "replicas")
    yield Run("as-sent", {"message_order": "as-sent"}, "zb-h1")
    yield Run("short-batch", {"micro_batch_size": 12})
    yield Run("shifted", {"augmentation": {"kind": "shift", "pixels": 1}}, "1f1b")
    yield Run("no-freeze", ALPHA, flags="--steps 6 --no-freeze")
    yield Run("other-seed", plan="1f1b", flags="--steps 6 --seed 7")
    yield Run("hierarchy", {**HIERARCHY, **STATIC}, model="hierarchy")
    yield Run("grows", {"batch_growth": "with-pipelines", **ALPHA}, flags="--steps 9", cluster="duo-tight")


def list_runs():
    yield from list_schedule_runs()
    yield from list_freezing_runs()
    yield from list_cache_runs()
    yield from list_durable_runs()
    yield from list_other_runs()
