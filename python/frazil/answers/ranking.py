"""The answer of `frazil plan`: plans, best first (docs/commands.md, plan)."""

from dataclasses import dataclass, field
from typing import Optional

from .answer import Answer
from .from_json import Part, bytes_text, optional, time_text
from .parts import Device, Doubt, LinkClass, ProcessDevices, notes_of_profile


@dataclass(frozen=True, kw_only=True)
class RankedPlan(Part):
    """A plan of a ranking; of one that does not fit also why."""

    summary: str
    feasible: bool
    pp: int
    dp: int
    chunks_per_device: int
    stages: int
    replicas: int
    schedule: str
    micro_batch_size: int
    micro_batches: int
    recompute: bool
    cuts: list[list[int]]
    makespan_ns: int
    samples_per_second: float
    lower_bound_makespan_ns: int
    lower_bound_makespan_name: str
    lower_bound_span_ns: int
    lower_bound_span_name: str
    devices: list[Device]
    extrapolated: bool
    chunks: Optional[int] = optional()
    in_flight: Optional[int] = optional()
    cached_prefix: Optional[bool] = optional()
    stage_devices: Optional[list[int]] = optional()
    commit_round_ns: Optional[int] = optional()
    commit_round_is_default: Optional[bool] = optional()
    lost_process_ends_run: Optional[bool] = optional()
    reason: Optional[str] = optional()
    device: Optional[int] = optional()
    needed_bytes: Optional[int] = optional()
    available_bytes: Optional[int] = optional()

    @property
    def memory_peak_bytes(self) -> int:
        """The peak of the fullest device."""
        return max(device.memory_peak_bytes for device in self.devices)


@dataclass(frozen=True, kw_only=True)
class Relief(Part):
    """A single change with which something would fit."""

    change: str
    amount: int
    text: str


@dataclass(frozen=True, kw_only=True)
class SearchedOrder(Part):
    """What the search for an order of work found within the memory of one plan."""

    within: str
    named_makespan_ns: int
    moves_tried: int
    taken: bool
    makespan_ns: Optional[int] = optional()
    lower_bound_makespan_ns: Optional[int] = optional()
    lower_bound_makespan_name: Optional[str] = optional()
    reason: Optional[str] = optional()


@dataclass(frozen=True, kw_only=True)
class Ranking(Answer):
    """The best plans. `plan` is the best one as in its file (docs/formats.md, Plan): a dict, which `simulate(plan=...)` takes."""

    candidates: int
    fit: int
    do_not_fit: int
    cannot_be_made: int
    cannot_be_as_fast: int
    backward_was_split_by_rule: bool
    bytes_are_placeholders: bool
    feasible: list[RankedPlan]
    infeasible: list[RankedPlan]
    equally_fast: Optional[int] = optional()
    doubts: list[Doubt] = field(default_factory=list)
    fits_if: Optional[str] = optional()
    at_least_ns: Optional[int] = optional()
    proven: Optional[bool] = optional()
    only_fastest_proven: Optional[bool] = optional()
    searched_space: Optional[str] = optional()
    shared_stages_tried: Optional[int] = optional()
    shared_stages_fastest_ns: Optional[int] = optional()
    steps_ahead_tried: Optional[int] = optional()
    steps_ahead_fastest_ns: Optional[int] = optional()
    moved_cuts: Optional[int] = optional()
    not_looked_at: Optional[int] = optional()
    not_looked_at_take_at_least_ns: Optional[int] = optional()
    searched_orders: list[SearchedOrder] = field(default_factory=list)
    relief: list[Relief] = field(default_factory=list)
    explanation: Optional[dict] = optional()
    processes: Optional[list[ProcessDevices]] = optional()
    links: Optional[dict[str, LinkClass]] = optional()
    plan: Optional[dict] = optional(repr=False)

    @property
    def best(self) -> Optional[RankedPlan]:
        """The plan that stands first; None if nothing fits."""
        return self.feasible[0] if self.feasible else None

    def _head(self) -> str:
        if not self.best:
            return "no plan fits"
        return f"{self.best.summary}: {time_text(self.best.makespan_ns)}, {self.best.samples_per_second:.1f} samples/s"

    def _table(self) -> tuple:
        rows = [
            [rank, one.summary, time_text(one.makespan_ns), f"{one.samples_per_second:.1f}", bytes_text(one.memory_peak_bytes)]
            for rank, one in enumerate(self.feasible or self.infeasible, 1)
        ]
        return ["rank", "plan", "makespan", "samples/s", "memory peak"], rows

    def _notes(self) -> list:
        proof = ["proven: no plan of the searched space takes less than the fastest"] if self.proven else []
        return [*proof, *notes_of_profile(self), *(one.text for one in self.relief)]
