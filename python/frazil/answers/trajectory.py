"""The answer of `frazil plan --forecast`: which plan to hold when (docs/commands.md, plan)."""

from dataclasses import dataclass, field
from typing import Optional

from .answer import Answer
from .from_json import Part, bytes_text, optional, time_text


@dataclass(frozen=True, kw_only=True)
class Features(Part):
    """Which cached output of a frozen prefix is read: its depth, and `memory` or `disk`."""

    layers: int
    tier: str


@dataclass(frozen=True, kw_only=True)
class MeasuredCosts(Part):
    """What a run has found its devices and layers to take beside its cluster and profile, in millionths."""

    devices_ppm: list[int]
    layers_ppm: list[int]


@dataclass(frozen=True, kw_only=True)
class Segment(Part):
    """A span of steps under one mask, one plan and one set of costs (`candidate` counts in the answer's candidates)."""

    step: int
    steps: int
    mask: str
    candidate: int
    step_ns: int
    cache: Optional[Features] = optional()
    cache_bytes: Optional[int] = optional()
    measured_costs: Optional[MeasuredCosts] = optional()


# `from` is a word of Python's own: it stands in `raw` and as `before`.
@dataclass(frozen=True, kw_only=True)
class Switch(Part):
    """A transition from plan to plan."""

    step: int
    to: int
    moved_bytes: int
    move_ns: int
    total_ns: int
    forced: bool
    break_even_steps: Optional[int] = optional()

    @property
    def before(self) -> int:
        """The candidate held before (`from`)."""
        return self.raw["from"]


@dataclass(frozen=True, kw_only=True)
class Fill(Part):
    """An epoch in which a cache is written."""

    step: int
    bytes: int
    filling_steps: int
    cost_ns: int
    features: Optional[Features] = optional()
    break_even_steps: Optional[int] = optional()


@dataclass(frozen=True, kw_only=True)
class Online(Part):
    """What a rule pays that knows no forecast, and what it guarantees."""

    paid_ns: int
    hindsight_ns: int
    switches: int
    candidates: int
    worst_factor: int
    worst_additive_ns: int


@dataclass(frozen=True, kw_only=True)
class Trajectory(Answer):
    """Plans by steps. `plans` are those held, as in their files, by the step from which on they are."""

    candidates: list[str]
    segments: list[Segment]
    switches: list[Switch]
    total_ns: int
    fills: list[Fill] = field(default_factory=list)
    one_cache_for_hosts: Optional[int] = optional()
    nothing_cached_ns: Optional[int] = optional()
    one_plan_ns: Optional[int] = optional()
    greedy_ns: Optional[int] = optional()
    online: Optional[Online] = optional()
    commit_round_ns: Optional[int] = optional()
    commit_round_is_default: Optional[bool] = optional()
    plans: dict = field(default_factory=dict, repr=False)

    def _head(self) -> str:
        return f"{len(self.segments)} segments, {len(self.switches)} transitions, {time_text(self.total_ns)} in all"

    def _table(self) -> tuple:
        rows = [[one.step, one.steps, one.mask, self.candidates[one.candidate], time_text(one.step_ns)] for one in self.segments]
        return ["from step", "steps", "mask", "plan", "step"], rows

    def _notes(self) -> list:
        moves = [f"at step {one.step} {bytes_text(one.moved_bytes)} move, in {time_text(one.total_ns)}" for one in self.switches]
        return moves + ([f"one plan throughout takes {time_text(self.one_plan_ns)}"] if self.one_plan_ns else [])
