"""What a batch decided, as columns; decisions as objects are made when somebody asks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from berth.cluster.arrays import IdColumn, IntColumn
from berth.scheduling.decide import Decision


@dataclass(frozen=True, slots=True)
class Placements:
    """Which nodes were chosen for pods of one shape, or to lose pods of a service, in the order of the decisions.

    Attributes
    ----------
    row : int32[n]
        The chosen nodes' rows.
    total : int64[n]
        Their weighted totals.
    n_feasible : int32[n]
        How many nodes passed all filters, each time.
    left : tuple of Decision
        What was decided of the pods that found no node, one for all of them; empty if all did.
    n_left : int
        How many found none.
    """

    row: IdColumn
    total: IntColumn
    n_feasible: IdColumn
    replay: Callable[[], dict[str, IntColumn]]
    failure: Decision | None = None
    n_left: int = 0

    def __len__(self) -> int:
        return len(self.row) + self.n_left

    def scores(self) -> dict[str, IntColumn]:
        """Return the unweighted scores of the chosen nodes by priority (int64[n] each), in the profile's order."""
        return self.replay()

    def decisions(self) -> list[Decision]:
        """Return all as objects, equal to those of deciding one at a time."""
        scores = self.replay()
        names = tuple(scores)
        rows = zip(*(column.tolist() for column in scores.values()), strict=True) if names else iter(())
        made = [
            Decision(row, total, dict(zip(names, next(rows, ()), strict=True)), n_feasible)
            for row, total, n_feasible in zip(
                self.row.tolist(), self.total.tolist(), self.n_feasible.tolist(), strict=True
            )
        ]
        if self.failure is not None:
            made += [self.failure] * self.n_left
        return made


def joined(parts: Sequence[Placements], failure: Decision | None = None, n_left: int = 0) -> Placements:
    """Put what was decided one after another together, and why the pods that are left found no node."""
    some = [part for part in parts if len(part.row)]
    if len(some) <= 1 and failure is None:
        return some[0] if some else no_placements()

    def replay() -> dict[str, IntColumn]:
        scores = [part.replay() for part in some]
        return (
            {name: np.concatenate([of_part[name] for of_part in scores]) for name in scores[0]}
            if scores
            else {}
        )

    none = no_placements()
    return Placements(
        np.concatenate([none.row, *(part.row for part in some)]),
        np.concatenate([none.total, *(part.total for part in some)]),
        np.concatenate([none.n_feasible, *(part.n_feasible for part in some)]),
        replay,
        failure,
        n_left,
    )


def of_decisions(decisions: list[Decision]) -> Placements:
    """Return, as columns, what was decided one at a time of pods that found a node."""
    placed = [(d.row, d.score, d.n_feasible) for d in decisions]
    row, total, n_feasible = np.array(placed, dtype=np.int64).reshape(-1, 3).T

    def replay() -> dict[str, IntColumn]:
        names = decisions[0].scores if decisions else ()
        return {name: np.array([d.scores[name] for d in decisions], dtype=np.int64) for name in names}

    return Placements(row.astype(np.int32), total, n_feasible.astype(np.int32), replay)


def no_placements() -> Placements:
    """Return the outcome of no pods at all."""
    none = np.empty(0, dtype=np.int32)
    return Placements(none, none.astype(np.int64), none, dict)
