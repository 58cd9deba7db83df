"""Objects that stand in several answers (docs/commands.md, Parts of JSON answers)."""

from dataclasses import dataclass
from typing import Optional

from .from_json import Part, optional


@dataclass(frozen=True, kw_only=True)
class Held(Part):
    """What a device holds at its peak."""

    parameters_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    stash_bytes: int
    receive_bytes: int
    cache_bytes: int


@dataclass(frozen=True, kw_only=True)
class Device(Part):
    """Memory of a device, and how long it works in a step where the answer says so."""

    memory_peak_bytes: int
    memory_limit_bytes: int
    memory_peak_at_ns: int
    held: Held
    name: Optional[str] = optional()
    busy_ns: Optional[int] = optional()


@dataclass(frozen=True, kw_only=True)
class Doubt(Part):
    """What in the profile was not measured."""

    fact: str
    kind: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ProcessDevices(Part):
    """The devices that a process owns."""

    host: str
    devices: list[int]
    process: Optional[int] = optional()


@dataclass(frozen=True, kw_only=True)
class LinkClass(Part):
    """Pairs of devices within a process, a host or across hosts, and the link of those that the cluster does not list."""

    pairs: int
    listed: int
    latency_ns: Optional[int] = optional()
    bandwidth_bytes_per_second: Optional[int] = optional()


def notes_of_profile(answer) -> list:
    """What an answer says of its profile: sentences that are to stand beside its numbers."""
    notes = ["the profile's backward was split into I and W by rule, not measured"] if answer.backward_was_split_by_rule else []
    notes += ["it fits if " + answer.fits_if] if answer.fits_if else []
    return notes + [f"{doubt.fact} ({doubt.kind}): {doubt.reason}" for doubt in answer.doubts]
