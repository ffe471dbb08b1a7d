"""The batch's kernel in Python and NumPy, for where Numba is not: the same board, the same decisions."""

from bisect import bisect_left, insort

import numpy as np

from berth.framework.plugin import Classed
from berth.scheduling.board import (
    CLOSED,
    COUNTER,
    CROWDED,
    DONE,
    LEVEL,
    MISSING,
    N_DONE,
    N_OPEN,
    PENDING,
    STALE,
    Board,
    Int32s,
    close_constants,
    next_local,
)
from berth.scheduling.ties import TieBreaker


def scan(board: Board, part: Classed, weight: int, n: int, ties: TieBreaker) -> int:
    """Place pods until ``n`` are placed or something is missing, looking at all positions for each."""
    state, value, slot = board.state, board.value, board.slot
    total, before = value, b""
    while state[N_DONE] < n:
        moved = int(state[PENDING])
        if moved >= 0:
            status = _settle(board, part)
            if status >= 0:
                return status
        if state[N_OPEN] == 0:
            break
        live = board.sizes.nonzero()[0]
        scores = np.zeros(len(board.sizes), dtype=np.int64)
        scores[live] = part.table(board.classes[live])
        scored = scores.tobytes()
        if scored == before:
            total[moved] = value[moved] + weight * scores[slot[moved]]
        else:
            total, before = value + (weight * scores)[slot], scored
        top = int(total.max())
        tied = (total == top).nonzero()[0]
        position = int(tied[ties.index(len(tied))])
        _note(board, position, top, int(scores[slot[position]]))
        part.place(int(board.rows[position]))
    return DONE


def _note(board: Board, position: int, total: int, class_score: int) -> None:
    state = board.state
    done = state[N_DONE]
    board.chosen[done], board.total[done] = position, total
    board.n_feasible[done], board.class_score[done] = state[N_OPEN], class_score
    state[N_DONE] += 1
    state[COUNTER] += 1
    state[PENDING] = position
    board.placed[position] += 1


def _settle(board: Board, part: Classed) -> int:
    state = board.state
    position = int(state[PENDING])
    local = next_local(
        position, board.placed[position], board.levels, board.run_start, board.run_at, board.runs
    )
    if local == MISSING:
        return LEVEL
    row, at = int(board.rows[position]), int(board.slot[position])
    if local == CLOSED:
        board.value[position], board.slot[position] = CLOSED, -1
        board.sizes[at] -= 1
        state[N_OPEN] -= 1
        state[PENDING] = -1
        part.close(row)
        stale = close_constants(position, board.kinds, board.histogram)
        return STALE if stale and state[N_OPEN] > 0 else -1
    name = part.class_of(row)
    if board.classes[at] != name:
        to = _slot_for(name, board)
        if to < 0:
            return CROWDED
        board.classes[to] = name
        board.sizes[to] += 1
        board.sizes[at] -= 1
        board.slot[position] = to
    board.value[position] = local + board.constant[position]
    state[PENDING] = -1
    return -1


def _slot_for(name: int, board: Board) -> int:
    known = np.flatnonzero((board.classes == name) & (board.sizes > 0))
    if len(known):
        return int(known[0])
    free = np.flatnonzero(board.sizes == 0)
    return int(free[0]) if len(free) else -1


class Buckets:
    """The open positions by total, for batches without classes: nothing is looked through but what ties.

    The positions of a total are kept in sorted lists, one for each stretch of positions: so none is ever long.
    """

    def __init__(self, value: Int32s) -> None:
        self._shift = max(8, (len(value).bit_length() >> 1) + 3)
        self._n_stretches = (len(value) >> self._shift) + 1
        self._stretches: dict[int, list[list[int]]] = {}
        self._sizes: dict[int, int] = {}
        self._totals: list[int] = []
        for total in np.unique(value[value > CLOSED]).tolist():
            positions = (value == total).nonzero()[0]
            ends = np.searchsorted(positions, np.arange(1, self._n_stretches) << self._shift)
            self._stretches[total] = [part.tolist() for part in np.split(positions, ends)]
            self._sizes[total] = len(positions)
            self._totals.append(total)

    @property
    def best(self) -> int:
        """The highest total."""
        return self._totals[-1]

    @property
    def n_tied(self) -> int:
        """How many positions have it."""
        return self._sizes[self._totals[-1]]

    def take(self, k: int) -> int:
        """Take out the k-th of the best positions."""
        total = self._totals[-1]
        for stretch in self._stretches[total]:
            if k < len(stretch):
                break
            k -= len(stretch)
        self._sizes[total] -= 1
        if not self._sizes[total]:
            self._totals.pop()
            del self._sizes[total], self._stretches[total]
        return stretch.pop(k)

    def put(self, position: int, total: int) -> None:
        """Put a position under another total."""
        stretches = self._stretches.get(total)
        if stretches is None:
            stretches = self._stretches[total] = [[] for _ in range(self._n_stretches)]
            self._sizes[total] = 0
            self._totals.insert(bisect_left(self._totals, total), total)
        insort(stretches[position >> self._shift], position)
        self._sizes[total] += 1


def by_buckets(board: Board, buckets: Buckets, n: int, ties: TieBreaker) -> int:
    """Place pods of a batch without classes until ``n`` are placed or something is missing."""
    levels, placed, chosen = board.levels, board.placed, board.chosen
    total_of, n_feasible, constant = board.total, board.n_feasible, board.constant
    done, n_open, counter, pending = board.state.tolist()
    n_levels, status = len(levels), DONE
    first = done
    while done < n:
        if pending >= 0:
            k = placed.item(pending)
            local = (
                levels.item(k, pending)
                if k < n_levels
                else int(next_local(pending, k, levels, board.run_start, board.run_at, board.runs))
            )
            if local == MISSING:
                status = LEVEL
                break
            if local == CLOSED:
                board.value[pending] = CLOSED
                n_open -= 1
                if close_constants(pending, board.kinds, board.histogram) and n_open:
                    pending, status = -1, STALE
                    break
            else:
                total = local + constant.item(pending)
                board.value[pending] = total
                buckets.put(pending, total)
            pending = -1
        if not n_open:
            break
        total_of[done] = buckets.best
        n_feasible[done] = n_open
        pending = buckets.take(ties.index(buckets.n_tied))
        chosen[done] = pending
        placed[pending] += 1
        done += 1
    board.class_score[first:done] = 0
    board.state[:] = done, n_open, counter + done - first, pending
    return status
