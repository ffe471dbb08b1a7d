"""A board is run to its end: compiled as long as that goes, else in Python. Knows no plugin and no cluster.

The run itself is a kernel (`berth.scheduling.kernel`) or its twin (`berth.scheduling.twin`). It stops when something is
missing, and is taken up again once that is there.
"""

from collections.abc import Callable

import numpy as np

from berth.cluster.arrays import IntColumn
from berth.framework.plugin import Classed
from berth.scheduling.batch_kernels import BATCH, PARTS, BatchKernels
from berth.scheduling.board import COUNTER, CROWDED, DONE, N_DONE, STALE, Board, Int32s, NoClasses
from berth.scheduling.kernel import SHIFT
from berth.scheduling.ties import TieBreaker
from berth.scheduling.twin import Buckets, by_buckets, scan

MAX_TREE_BYTES = 64 << 20
"""The memory that trees may take; with more classes the rest of the run goes in Python, which needs none."""
MAX_TOTAL = 1 << 29
"""Totals are 32-bit, with room for `CLOSED` below them: heavier weights are decided one at a time, in 64 bits."""

_N_WORTH_BUCKETS = 16

Supply = Callable[[Board, int], Board | None]
"""Given a board and why it stopped, `LEVEL` or `STALE`, puts there what is missing; None ends the run."""


def run_board(
    board: Board, part: Classed, weights: IntColumn, n: int, ties: TieBreaker, supply: Supply
) -> Board:
    """Decide until ``n`` are decided, no position is feasible, or ``supply`` ends it; return the board as it is then.

    ``weights`` (int64[n_scores]) are those of the part's scores.
    """

    def supplied(board: Board, status: int) -> Board | None:
        if status == CROWDED:
            return _with_more_slots(board)
        return board if status == DONE else supply(board, status)

    can_compile = ties.rule != "random" and isinstance(part, PARTS) and board.value.dtype == np.int32
    kernels = BATCH.kernels_for(n) if can_compile else None
    is_over = False
    if kernels is not None:
        board, is_over = _compiled(kernels, board, part, weights, n, ties, supplied)
    return board if is_over else _in_python(board, part, weights, n, ties, supplied)


def placed_before(chosen: Int32s) -> IntColumn:
    """Return how often each of the chosen positions had been chosen before (int64[n])."""
    order = np.argsort(chosen, kind="stable")
    in_order = chosen[order]
    before = np.empty(len(chosen), dtype=np.int64)
    before[order] = np.arange(len(chosen)) - np.searchsorted(in_order, in_order)
    return before


def _compiled(
    kernels: BatchKernels,
    board: Board,
    part: Classed,
    weights: IntColumn,
    n: int,
    ties: TieBreaker,
    supply: Supply,
) -> tuple[Board, bool]:
    """Run compiled, as long as the trees have room; tell whether the run is over."""
    status = STALE
    board = _with_trees(board)
    while len(board.best):
        if status == STALE:
            kernels.build(board.slot, board.value, len(board.classes), board.best, board.ties)
        status = kernels.run(board, part, weights, n, ties.rule == "round-robin")
        ties.counter = int(board.state[COUNTER])
        after = supply(board, status) if status != DONE else None
        if after is None:
            return board, True
        if len(after.classes) > len(board.classes):
            after, status = _with_trees(after), STALE
        board = after
    return board, False


def _in_python(
    board: Board, part: Classed, weights: IntColumn, n: int, ties: TieBreaker, supply: Supply
) -> Board:
    use_buckets = isinstance(part, NoClasses) and n >= _N_WORTH_BUCKETS
    buckets = None
    while board.state[N_DONE] < n:
        if use_buckets:
            buckets = buckets or Buckets(board.value)
            status = by_buckets(board, buckets, n, ties)
        else:
            status = scan(board, part, weights, n, ties)
        after = supply(board, status) if status != DONE else None
        if after is None:
            break
        board = after
        if status == STALE:
            buckets = None
    return board


def _with_trees(board: Board) -> Board:
    """Give a board trees for its slots, not built yet; none at all if they took too much memory."""
    n_slots = len(board.classes)
    blocks = max(1, (len(board.rows) + (1 << SHIFT) - 1) >> SHIFT)
    width = 2 << (blocks - 1).bit_length()
    if n_slots * width * 8 > MAX_TREE_BYTES:
        n_slots = 0
    best = np.empty((n_slots, width if n_slots else 0), dtype=np.int32)
    return board._replace(best=best, ties=np.empty_like(best))


def _with_more_slots(board: Board) -> Board:
    """Double the room for classes."""
    more = np.zeros_like(board.classes)
    return board._replace(
        classes=np.concatenate([board.classes, more]),
        sizes=np.concatenate([board.sizes, more.astype(np.int32)]),
        feasible=np.concatenate([board.feasible, more.astype(np.bool_)]),
    )
