"""The answers of `frazil plan` to other questions: a held plan, another system's planner, a work graph (docs/commands.md, plan)."""

from dataclasses import dataclass, field
from typing import Optional

from .answer import Answer
from .from_json import Part, bytes_text, optional, time_text


@dataclass(frozen=True, kw_only=True)
class HeldPlan(Answer):
    """Whether to go on with a plan under another mask, or to change to `plan`, which `plan_file` holds as in its file."""

    stays: bool
    steps: int
    plan: str
    step_ns: int
    switch_ns: int
    moved_bytes: int
    total_ns: int
    held_step_ns: Optional[int] = optional()
    held_does_not_run: Optional[str] = optional()
    break_even_steps: Optional[int] = optional()
    not_looked_at: Optional[int] = optional()
    not_looked_at_take_at_least_ns: Optional[int] = optional()
    commit_round_ns: Optional[int] = optional()
    commit_round_is_default: Optional[bool] = optional()
    plan_file: Optional[dict] = optional(repr=False)

    def _head(self) -> str:
        return f"{'stay with' if self.stays else 'change to'} {self.plan}: {time_text(self.step_ns)} a step, {time_text(self.total_ns)} in all"


@dataclass(frozen=True, kw_only=True)
class SystemPlan(Part):
    """What one planner found."""

    summary: str
    feasible: bool
    makespan_ns: int
    samples_per_second: float
    memory_peak_bytes: int
    extrapolated: bool
    reason: Optional[str] = optional()


@dataclass(frozen=True, kw_only=True)
class PlannerComparison(Answer):
    """Another system's plan beside the best one. `plan` is that system's, as in its file, if it fits."""

    planner: str
    assumes: str
    backward_was_split_by_rule: bool
    named: Optional[SystemPlan] = optional()
    frazil: Optional[SystemPlan] = optional()
    ratio: Optional[float] = optional()
    bottleneck_ns: Optional[int] = optional()
    layers_left_out: Optional[list[str]] = optional()
    commit_round_ns: Optional[int] = optional()
    commit_round_is_default: Optional[bool] = optional()
    plan: Optional[dict] = optional(repr=False)

    def _head(self) -> str:
        return self.planner + (f": {self.ratio:.2f} x the best plan's time" if self.ratio else "")

    def _table(self) -> tuple:
        both = [(name, one) for name, one in ((self.planner, self.named), ("frazil", self.frazil)) if one]
        rows = [[name, one.summary, time_text(one.makespan_ns), bytes_text(one.memory_peak_bytes)] for name, one in both]
        return ["planner", "plan", "makespan", "memory peak"], rows

    def _notes(self) -> list:
        return [f"{self.planner} assumes {self.assumes}"]


@dataclass(frozen=True, kw_only=True)
class GraphStage(Part):
    """A stage of a work graph that was cut."""

    on: str
    load_fs: int
    work_fs: int
    transfer_fs: int
    memory_bytes: int
    node_ids: list[int]


@dataclass(frozen=True, kw_only=True)
class GraphCut(Answer):
    """The best contiguous split of a work graph; loads are femtoseconds."""

    nodes: int
    edges: int
    parts: int
    devices: int
    hosts: int
    load_fs: int
    lower_bound_fs: int
    certificate: str
    gap_ppm: int
    ideals: int
    has_all_ideals: bool
    states: int
    idle_devices: int
    stages: list[GraphStage] = field(default_factory=list)
    idle_reason: Optional[str] = optional()

    def _head(self) -> str:
        return f"{len(self.stages)} stages of {self.nodes} nodes, largest load {self.load_fs / 1e12:.6f} ms ({self.certificate})"

    def _table(self) -> tuple:
        rows = [[one.on, f"{one.load_fs / 1e12:.6f} ms", bytes_text(one.memory_bytes), len(one.node_ids)] for one in self.stages]
        return ["on", "load", "memory", "nodes"], rows
