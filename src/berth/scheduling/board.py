"""A batch under way, as arrays by position: what the compiled kernel and its twins in Python work on.

A position is a row that was feasible when the batch began; positions are in node order. Knows no plugin.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import BoolColumn, IdColumn, IntColumn, numbered
from berth.framework.plugin import SHUT, Classed

CLOSED = -(1 << 30)
"""The total of a row that is not feasible: below all others, and still so after every score is added."""

MISSING = CLOSED - 1
"""Nobody has computed yet what a row is worth with so many placements more."""

# Why a run stopped.
DONE, LEVEL, STALE, CROWDED = range(4)
# Entries of `Board.state`.
N_DONE, N_OPEN, COUNTER, PENDING = range(4)

Int32s = NDArray[np.int32]


class Board(NamedTuple):
    """The arrays of one batch.

    Attributes
    ----------
    rows : int64[m]
        The row of each position.
    value : int32[m]
        Its total but for the classed score; `CLOSED` where the pod does not fit any more.
    slot : int32[m]
        Where its class stands in ``classes``; -1 when closed.
    placed : int32[m]
        How many pods the batch has placed on it.
    constant : int32[m]
        Its constant scores, weighted; where its kinds lie within the extremes.
    levels : int32[n_levels, m]
        Its local scores, weighted, after so many placements.
    run_start, run_at : int32[m]
        Beyond the levels: from which number of placements on ``runs[run_at]`` tells the local scores (-1: none).
    runs : int32[n_runs, length]
    kinds : int32[n_parts, m]
        Of each constant score whose raw values differ: which of its values, in ascending order, the row has.
    histogram : int32[n_parts, n_values]
        How many feasible positions have each of them.
    extremes : int32[n_parts, 2]
        The lowest and the highest kind that ``constant`` was normalised by.
    classes : int64[n_slots]
        The classes that are live.
    sizes : int32[n_slots]
        How many open positions each has; 0: the slot is free.
    feasible : bool[n_slots]
        Whether the pod fits there, for all that the class has to say.
    best, ties : int32[n_slots, 2 * n_blocks]
        A tournament tree a class over blocks of positions: the highest value below each knot, and how many have it.
    state : int64[4]
        Decisions made, open positions, the tie counter, and the position whose next value is not known yet (-1).
    chosen, total, n_feasible : int32[n] or int64[n]
        What was decided: positions, totals, feasible positions before.
    class_score : int32[n_scores, n]
        The unweighted scores of the class.
    """

    rows: IntColumn
    value: Int32s
    slot: Int32s
    placed: Int32s
    constant: Int32s
    levels: Int32s
    run_start: Int32s
    run_at: Int32s
    runs: Int32s
    kinds: Int32s
    histogram: Int32s
    extremes: Int32s
    classes: IntColumn
    sizes: Int32s
    feasible: BoolColumn
    best: Int32s
    ties: Int32s
    state: IntColumn
    chosen: Int32s
    total: IntColumn
    n_feasible: Int32s
    class_score: Int32s


class NoClasses(NamedTuple):
    """The classed score of a profile that has none: all rows are of one class, which scores 0."""

    nothing: IntColumn

    def class_of(self, row: Any) -> Any:
        """Return the only class."""
        return self.nothing[row]

    def table(self, classes: IntColumn, sizes: IdColumn) -> IntColumn:
        """Return 0."""
        return np.zeros((1, len(classes)), dtype=np.int64)

    def place(self, row: int) -> None:
        """Nothing moves."""

    def close(self, row: int) -> None:
        """Nothing moves."""


class Layout(NamedTuple):
    """Which rows are of which class when a batch begins.

    Attributes
    ----------
    slot : int32[m]
    classes : int64[n_slots]
    sizes : int32[n_slots]
    feasible : bool[n_slots]
        As in `Board`.
    n_scores : int
        How many scores a class has.
    """

    slot: Int32s
    classes: IntColumn
    sizes: Int32s
    feasible: BoolColumn
    n_scores: int

    @classmethod
    def of(cls, part: Classed, rows: IntColumn) -> "Layout":
        """Look at the rows of a batch."""
        slot, live = numbered(part.class_of(rows))
        n_slots = 1 if isinstance(part, NoClasses) else len(live) + 8
        sizes = np.bincount(slot, minlength=n_slots).astype(np.int32)
        scores = part.table(live, sizes[: len(live)])
        feasible = np.zeros(n_slots, dtype=np.bool_)
        feasible[: len(live)] = scores[0] != SHUT
        classes = np.pad(live, (0, n_slots - len(live)))
        return cls(slot.astype(np.int32), classes, sizes, feasible, len(scores))


def new_board(layout: Layout, rows: IntColumn, levels: NDArray[Any], n: int, counter: int) -> Board:
    """Return a board on which nothing is decided yet, without constant scores and runs.

    Parameters
    ----------
    rows, levels
        As in `Board`; with levels in 64 bits the board is one for `berth.scheduling.twin` alone.
    n, counter : int
        How many decisions there is room for, and where the tie counter stands.
    """
    m = len(rows)
    none = np.empty((0, 0), dtype=np.int32)
    return Board(
        rows=rows, value=levels[0].copy(), slot=layout.slot, placed=np.zeros(m, np.int32),
        constant=np.zeros(m, np.int32), levels=levels,
        run_start=np.zeros(m, np.int32), run_at=np.full(m, -1, np.int32), runs=np.empty((1, 1), np.int32),
        kinds=np.empty((0, m), np.int32), histogram=np.empty((0, 1), np.int32),
        extremes=np.empty((0, 2), np.int32),
        classes=layout.classes, sizes=layout.sizes, feasible=layout.feasible, best=none, ties=none,
        state=np.array([0, m, counter, -1]),
        chosen=np.empty(n, np.int32), total=np.empty(n, np.int64),
        n_feasible=np.empty(n, np.int32), class_score=np.empty((layout.n_scores, n), np.int32),
    )  # fmt: skip


def next_local(position: int, k: int, levels: Int32s, run_start: Int32s, run_at: Int32s, runs: Int32s) -> int:
    """Return the local scores of a position after ``k`` placements, `CLOSED` or `MISSING`."""
    if k < len(levels):
        return levels[k, position]
    at, start = run_at[position], run_start[position]
    if at >= 0 and start <= k < start + runs.shape[1]:
        return runs[at, k - start]
    return MISSING


def recount(position: int, by: int, kinds: Int32s, histogram: Int32s) -> None:
    """Count a position among the feasible ones, or leave it out."""
    for part in range(len(kinds)):
        histogram[part, kinds[part, position]] += by


def recount_class(at: int, by: int, slot: Int32s, kinds: Int32s, histogram: Int32s) -> None:
    """Count all positions of a class."""
    if len(kinds) == 0:
        return
    for position in range(len(slot)):
        if slot[position] == at:
            recount(position, by, kinds, histogram)


def is_stale(histogram: Int32s, extremes: Int32s) -> bool:
    """Tell whether the lowest or the highest raw score of a part is another one than scores were normalised by."""
    for part in range(len(histogram)):
        lowest, highest = extremes[part]
        if histogram[part, lowest] == 0 or histogram[part, highest] == 0:
            return True
        if histogram[part, :lowest].any() or histogram[part, highest + 1 :].any():
            return True
    return False
