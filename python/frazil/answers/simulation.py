"""The answers of `frazil simulate`: a plan's step, a what-if, schedules compared (docs/commands.md, simulate)."""

from dataclasses import dataclass, field
from typing import Optional

from .answer import Answer
from .from_json import Part, bytes_text, optional, time_text
from .parts import Device, Doubt, LinkClass, ProcessDevices, notes_of_profile


@dataclass(frozen=True, kw_only=True)
class Jitter(Part):
    """Times of a step whose durations vary."""

    draws: int
    amplitude_ppm: int
    seed: int
    p10_ns: int
    median_ns: int
    p90_ns: int


@dataclass(frozen=True, kw_only=True)
class DeviceTime(Part):
    """Where the time of a device goes; the parts add up to the makespan. `name` is missing in the sum over all."""

    compute_ns: int
    exposed_communication_ns: int
    wait_upstream_ns: int
    wait_downstream_ns: int
    update_ns: int
    fill_ns: int
    drain_ns: int
    name: Optional[str] = optional()


@dataclass(frozen=True, kw_only=True)
class IdleTime(Part):
    """Where the time of all devices goes."""

    devices: list[DeviceTime]
    all: DeviceTime


@dataclass(frozen=True, kw_only=True)
class PathStep(Part):
    """An action of the critical path, and what it waited for."""

    action: str
    device: str
    lane: str
    start_ns: int
    end_ns: int
    reason: str
    delay_ns: int


@dataclass(frozen=True, kw_only=True)
class CriticalPath(Part):
    """The chain of work and messages that the step takes as long as; `compute` is by kind of action."""

    length_ns: int
    compute: dict[str, int]
    transfers_ns: int
    hops_ns: int
    collectives_ns: int
    overheads_ns: int
    devices: list[dict]
    steps: list[PathStep]


@dataclass(frozen=True, kw_only=True)
class Step(Answer):
    """What the simulator says of any step."""

    makespan_ns: int
    span_ns: int
    bubble: float
    bubble_span: float
    lower_bound_makespan_ns: Optional[int] = optional()
    lower_bound_makespan_name: Optional[str] = optional()
    lower_bound_span_ns: Optional[int] = optional()
    lower_bound_span_name: Optional[str] = optional()
    any_plan_at_least_ns: Optional[int] = optional()
    any_plan_bound_name: Optional[str] = optional()
    fits: Optional[bool] = optional()
    reason: Optional[str] = optional()
    backward_was_split_by_rule: Optional[bool] = optional()
    contended_makespan_ns: Optional[int] = optional()
    jitter: Optional[Jitter] = optional()
    idle_time: Optional[IdleTime] = optional()
    critical_path: Optional[CriticalPath] = optional()
    messages: Optional[dict] = optional()
    doubts: list[Doubt] = field(default_factory=list)
    fits_if: Optional[str] = optional()

    def _notes(self) -> list:
        bound = self.lower_bound_makespan_ns
        notes = [f"no order on these stages takes less than {time_text(bound)} ({self.lower_bound_makespan_name})"] if bound else []
        notes += [f"does not fit: {self.reason}"] if self.fits is False else []
        return notes + notes_of_profile(self)


@dataclass(frozen=True, kw_only=True)
class PlanStep(Step):
    """A step of a plan."""

    summary: str
    samples_per_second: float
    extrapolated: bool
    bytes_are_placeholders: bool
    reductions_overlap: bool
    devices: list[Device]
    steps: Optional[int] = optional()
    step_ns: Optional[int] = optional()
    lower_bound_step_ns: Optional[int] = optional()
    bucket_bytes: Optional[int] = optional()
    cache_reads_are_free: Optional[bool] = optional()
    processes: Optional[list[ProcessDevices]] = optional()
    links: Optional[dict[str, LinkClass]] = optional()
    commit_round_ns: Optional[int] = optional()
    commit_round_is_default: Optional[bool] = optional()
    lost_process_ends_run: Optional[bool] = optional()

    def _head(self) -> str:
        step = self.makespan_ns if self.step_ns is None else self.step_ns
        return f"{self.summary}: {time_text(step)}, {self.samples_per_second:.1f} samples/s, bubble {self.bubble:.2%}"

    def _table(self) -> tuple:
        rows = [[one.name, time_text(one.busy_ns), bytes_text(one.memory_peak_bytes), bytes_text(one.memory_limit_bytes)] for one in self.devices]
        return ["device", "busy", "memory peak", "capacity"], rows


@dataclass(frozen=True, kw_only=True)
class WhatIf(Step):
    """A step of a schedule, from the times of stages alone."""

    schedule: str
    stages: int
    micro_batches: int
    chunks: int
    peak_chunks: list[int]
    peak_bytes: Optional[list[int]] = optional()
    memory_limit_bytes: Optional[int] = optional()
    recomputed_counts_as_kept: Optional[bool] = optional()
    objective: Optional[str] = optional()
    moves_tried: Optional[int] = optional()

    def _head(self) -> str:
        return f"{self.stages} stages, {self.micro_batches} micro-batches, {self.schedule}: {time_text(self.makespan_ns)}, bubble {self.bubble:.2%}"


@dataclass(frozen=True, kw_only=True)
class ComparedSchedule(Part):
    """A schedule in its own order and depth; of one that is excluded only its name and why."""

    schedule: str
    chunks: Optional[int] = optional()
    makespan_ns: Optional[int] = optional()
    span_ns: Optional[int] = optional()
    bubble: Optional[float] = optional()
    bubble_span: Optional[float] = optional()
    most_in_flight: Optional[float] = optional()
    parameter_copies: Optional[int] = optional()
    peak_bytes: Optional[int] = optional()
    infeasible: Optional[str] = optional()


@dataclass(frozen=True, kw_only=True)
class Comparison(Answer):
    """All synchronous schedules, the fastest first."""

    compared: list[ComparedSchedule]
    backward_was_split_by_rule: Optional[bool] = optional()
    memory_limit_bytes: Optional[int] = optional()

    def _head(self) -> str:
        return f"{len(self.compared)} schedules, each in its own order and depth"

    def _table(self) -> tuple:
        rows = [[one.schedule, *_cells_of(one)] for one in self.compared]
        return ["schedule", "chunks", "makespan", "bubble", "in flight", ""], rows


def _cells_of(one: ComparedSchedule) -> list:
    if one.makespan_ns is None or one.bubble is None:
        return ["-", "-", "-", "-", one.infeasible or ""]
    return [one.chunks, time_text(one.makespan_ns), f"{one.bubble:.1%}", f"{one.most_in_flight:g}", one.infeasible or ""]
