"""How the node that a pod leaves is scored by its cpu and memory: with 1.13's arithmetic, and with 1.36's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from berth.cluster.arrays import IntColumn
from berth.plugins.node_resources_score import evenness_gained, most_allocated, weighted_mean
from berth.plugins.resource_allocation import balanced_allocation, most_requested


class CpuAndMemory(NamedTuple):
    """Milli-CPU and bytes, int64[n] each."""

    milli_cpu: IntColumn
    memory: IntColumn


class Usage(NamedTuple):
    """What is requested of nodes before a pod leaves each of them and after it has left, and what they offer."""

    before: CpuAndMemory
    after: CpuAndMemory
    allocatable: CpuAndMemory


Score = Callable[[Usage, int], IntColumn]
"""(usage, maximum) to scores, int64[n]."""


@dataclass(frozen=True, slots=True)
class RemovalArithmetic:
    """A release's arithmetic for removals.

    Attributes
    ----------
    maximum : int
        The highest score of a priority.
    most_requested : callable
        MostRequestedPriority; defaults for silent containers are counted.
    balanced : callable
        BalancedResourceAllocation.
    balances_silent : bool
        Whether defaults for silent containers count in `balanced`, too.
    """

    maximum: int
    most_requested: Score
    balanced: Score
    balances_silent: bool


def _most_requested(usage: Usage, maximum: int) -> IntColumn:
    (cpu, memory), (cpu_of, memory_of) = usage.after, usage.allocatable
    return most_requested(cpu, cpu_of, memory, memory_of, maximum)


def _balanced(usage: Usage, maximum: int) -> IntColumn:
    (cpu, memory), (cpu_of, memory_of) = usage.after, usage.allocatable
    return balanced_allocation(cpu, cpu_of, memory, memory_of, maximum)


def _most_allocated(usage: Usage, maximum: int) -> IntColumn:
    used = ((after, of, 1) for after, of in zip(usage.after, usage.allocatable, strict=True))
    return weighted_mean(most_allocated, used, len(usage.after.milli_cpu), maximum)


REMOVAL_1_13 = RemovalArithmetic(10, _most_requested, _balanced, balances_silent=True)
REMOVAL_1_36 = RemovalArithmetic(
    100, _most_allocated, lambda usage, maximum: evenness_gained(*usage, maximum), balances_silent=False
)
