"""A batch under way, as arrays by position: what the compiled kernel and its twins in Python work on.

A position is a row that was feasible when the batch began; positions are in node order. Knows no plugin.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import IntColumn
from berth.framework.plugin import Classed

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
        Its constant scores, weighted.
    levels : int32[n_levels, m]
        Its local scores, weighted, after so many placements.
    run_start, run_at : int32[m]
        Beyond the levels: from which number of placements on ``runs[run_at]`` tells the local scores (-1: none).
    runs : int32[n_runs, length]
    kinds : int32[n_parts, m]
        Of each constant score whose raw values differ: which of its values, in ascending order, the row has.
    histogram : int32[n_parts, n_values]
        How many open positions have each of them.
    classes : int64[n_slots]
        The classes that are live.
    sizes : int32[n_slots]
        How many open positions each has; 0: the slot is free.
    best, ties : int32[n_slots, 2 * n_blocks]
        A tournament tree a class over blocks of positions: the highest value below each knot, and how many have it.
    state : int64[4]
        Decisions made, open positions, the tie counter, and the position whose next value is not known yet (-1).
    chosen, total, n_feasible, class_score : int32[n] or int64[n]
        What was decided: positions, totals, open positions before, the unweighted score of the class.
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
    classes: IntColumn
    sizes: Int32s
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

    def table(self, classes: IntColumn) -> IntColumn:
        """Return 0."""
        return np.zeros(len(classes), dtype=np.int64)

    def place(self, row: int) -> None:
        """Nothing moves."""

    def close(self, row: int) -> None:
        """Nothing moves."""


def new_board(part: Classed, rows: IntColumn, levels: NDArray[Any], n: int, counter: int) -> Board:
    """Return a board on which nothing is decided yet, without constant scores and runs.

    Parameters
    ----------
    rows, levels
        As in `Board`; with levels in 64 bits the board is one for `berth.scheduling.twin` alone.
    n, counter : int
        How many decisions there is room for, and where the tie counter stands.
    """
    m = len(rows)
    classes, slot = np.unique(part.class_of(rows), return_inverse=True)
    n_slots = 1 if isinstance(part, NoClasses) else len(classes) + 8
    none = np.empty((0, 0), dtype=np.int32)
    return Board(
        rows=rows, value=levels[0].copy(), slot=slot.astype(np.int32), placed=np.zeros(m, np.int32),
        constant=np.zeros(m, np.int32), levels=levels,
        run_start=np.zeros(m, np.int32), run_at=np.full(m, -1, np.int32), runs=np.empty((1, 1), np.int32),
        kinds=np.empty((0, m), np.int32), histogram=np.empty((0, 1), np.int32),
        classes=np.pad(classes, (0, n_slots - len(classes))),
        sizes=np.bincount(slot, minlength=n_slots).astype(np.int32), best=none, ties=none,
        state=np.array([0, m, counter, -1]),
        chosen=np.empty(n, np.int32), total=np.empty(n, np.int64),
        n_feasible=np.empty(n, np.int32), class_score=np.empty(n, np.int32),
    )  # fmt: skip


def next_local(position: int, k: int, levels: Int32s, run_start: Int32s, run_at: Int32s, runs: Int32s) -> int:
    """Return the local scores of a position after ``k`` placements, `CLOSED` or `MISSING`."""
    if k < len(levels):
        return levels[k, position]
    at, start = run_at[position], run_start[position]
    if at >= 0 and start <= k < start + runs.shape[1]:
        return runs[at, k - start]
    return MISSING


def close_constants(position: int, kinds: Int32s, histogram: Int32s) -> bool:
    """Leave a position out; tell whether a highest or lowest raw score has gone with it."""
    stale = False
    for part in range(len(kinds)):
        kind = kinds[part, position]
        histogram[part, kind] -= 1
        if histogram[part, kind] == 0:
            stale = stale or not histogram[part, :kind].any() or not histogram[part, kind + 1 :].any()
    return stale
