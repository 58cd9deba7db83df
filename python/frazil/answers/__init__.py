"""Answers of the programs as dataclasses."""

from .other_questions import GraphCut, HeldPlan, PlannerComparison
from .ranking import RankedPlan, Ranking
from .simulation import Comparison, PlanStep, WhatIf
from .trajectory import Trajectory

__all__ = ["Comparison", "GraphCut", "HeldPlan", "PlanStep", "PlannerComparison", "RankedPlan", "Ranking", "Trajectory", "WhatIf"]
