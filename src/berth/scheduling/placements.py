"""What a batch decided, as columns; decisions as objects are made when somebody asks."""

from collections.abc import Callable
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


def joined(first: Placements, decisions: list[Decision], failure: Decision | None, n_left: int) -> Placements:
    """Put what a batch decided and what was decided one at a time after it together."""
    placed = [(d.row, d.score, d.n_feasible) for d in decisions if d.row is not None]
    columns = np.array(placed, dtype=np.int64).reshape(-1, 3).T

    def replay() -> dict[str, IntColumn]:
        scores = first.replay()
        names = tuple(decisions[0].scores) if decisions else tuple(scores)
        later = {name: np.array([d.scores[name] for d in decisions], dtype=np.int64) for name in names}
        return {
            name: np.concatenate([scores[name], later[name]]) if len(first.row) else later[name]
            for name in names
        }

    return Placements(
        np.concatenate([first.row, columns[0].astype(np.int32)]),
        np.concatenate([first.total, columns[1]]),
        np.concatenate([first.n_feasible, columns[2].astype(np.int32)]),
        replay,
        failure,
        n_left,
    )


def no_placements() -> Placements:
    """Return the outcome of no pods at all."""
    none = np.empty(0, dtype=np.int32)
    return Placements(none, none.astype(np.int64), none, dict)
