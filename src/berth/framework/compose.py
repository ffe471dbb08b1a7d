"""Filters made of filters."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.plugin import FITS, BatchKind, FilterPlugin, Plugin
from berth.framework.rules import Rule, RuleKind, Term


@dataclass(slots=True)
class Parts:
    """The states of the parts, and the combinations of their codes that were seen so far, numbered from 1."""

    pod: Incoming
    cluster: Cluster
    states: list[Any]
    number_of: dict[tuple[int, ...], int]
    combinations: list[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class AllOf(FilterPlugin[Parts]):
    """Asks every part, also after one has failed, and gives the reasons of all: upstream's GeneralPredicates."""

    parts: tuple[FilterPlugin[Any], ...]

    name = "AllOf"

    def prepare(self, pod: Incoming, cluster: Cluster) -> Parts:
        return Parts(pod, cluster, [part.prepare(pod, cluster) for part in self.parts], {}, [])

    def mend(self, state: Parts, changes: Changes) -> Rows | None:
        touched = np.zeros(state.cluster.nodes.n_rows, dtype=np.bool_)
        for i, part in enumerate(self.parts):
            rows = part.mend(state.states[i], changes)
            if rows is None:
                state.states[i] = part.prepare(state.pod, state.cluster)
                rows = ALL_ROWS
            touched[rows] = True
        return np.flatnonzero(touched)

    def filter(self, state: Parts, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        codes = [
            part.filter(part_state, rows, placed)
            for part, part_state in zip(self.parts, state.states, strict=True)
        ]
        found: IntColumn = np.zeros_like(codes[0])
        failing = np.flatnonzero(np.logical_or.reduce([column != FITS for column in codes]))
        if len(failing):
            number_of = state.number_of
            together = list(zip(*(column[failing].tolist() for column in codes), strict=True))
            for combination in dict.fromkeys(together):
                if combination not in number_of:
                    state.combinations.append(combination)
                    number_of[combination] = len(state.combinations)
            found[failing] = [number_of[combination] for combination in together]
        return found

    def parts_of(self, state: Parts) -> Iterable[tuple[FilterPlugin[Any], Any]]:
        return zip(self.parts, state.states, strict=True)

    def reasons(self, state: Parts, code: int) -> tuple[str, ...]:
        codes = state.combinations[abs(code) - 1]
        pieces = zip(self.parts, state.states, codes, strict=True)
        return tuple(
            reason for part, part_state, c in pieces if c != FITS for reason in part.reasons(part_state, c)
        )

    def batch(self, state: Parts, feasible: NDArray[np.bool_]) -> BatchKind:
        kinds = batch_kinds(self.parts, state.states, feasible)
        if set(kinds) == {BatchKind.CONSTANT}:
            return BatchKind.CONSTANT
        return BatchKind.LOCAL if set(kinds) <= {BatchKind.LOCAL, BatchKind.CONSTANT} else BatchKind.SERIAL

    def moved_by(self, state: Parts, other: Incoming) -> bool:
        parts = zip(self.parts, state.states, strict=True)
        return any(
            part.moved_by(part_state, other)
            for part, part_state in parts
            if part.resource_rule(part_state) is None
        )

    def resource_rule(self, state: Parts) -> Rule | None:
        every_row = np.ones(state.cluster.nodes.n_rows, dtype=np.bool_)
        terms: tuple[Term, ...] = ()
        for part, part_state in zip(self.parts, state.states, strict=True):
            rule = part.resource_rule(part_state)
            if rule is not None:
                terms += rule.terms
            elif part.batch(part_state, every_row) is not BatchKind.CONSTANT:
                return None
        return Rule(RuleKind.FITS, terms)


def batch_kinds(
    plugins: Sequence[Plugin[Any]], states: Sequence[Any], feasible: NDArray[np.bool_]
) -> list[object]:
    """Ask plugins how they take part in a batch."""
    return [plugin.batch(state, feasible) for plugin, state in zip(plugins, states, strict=True)]
