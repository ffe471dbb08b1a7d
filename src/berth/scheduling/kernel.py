"""The batch as a kernel: plain Python over arrays, which Numba compiles (`berth.scheduling.batch_kernels`).

Each class has a tournament tree over blocks of positions. The best decision is that of the best class, and where several
rows or classes tie, their trees are descended together to the one whose turn it is: exact, in node order. After a
placement one leaf changes.
"""

import numpy as np

from berth.cluster.arrays import IdColumn, IntColumn
from berth.framework.plugin import SHUT, Classed
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
    is_stale,
    next_local,
    recount,
    recount_class,
)

SHIFT = 4
"""A leaf is a block of 16 positions: trees stay small, and looking through one costs as much as two levels of a tree."""


def class_of(self: Classed, row: int) -> int:
    """Return the class of a row; stands for the part's own method, which is compiled."""
    return self.class_of(row)


def table(self: Classed, classes: IntColumn, sizes: IdColumn) -> IntColumn:
    """Return the scores of classes, likewise."""
    return self.table(classes, sizes)


def place(self: Classed, row: int) -> None:
    """Count a pod, likewise."""
    self.place(row)


def close(self: Classed, row: int) -> None:
    """Leave a row out, likewise."""
    self.close(row)


def refresh_block(block: int, slot: Int32s, value: Int32s, at: int, best: Int32s, ties: Int32s) -> bool:
    """Look through a block for the rows of one slot; tell whether its leaf has changed."""
    highest, count = CLOSED, 0
    for position in range(block << SHIFT, min((block + 1) << SHIFT, len(slot))):
        if slot[position] == at:
            if value[position] > highest:
                highest, count = value[position], 1
            elif value[position] == highest:
                count += 1
    leaf = (best.shape[1] >> 1) + block
    changed = best[at, leaf] != highest or ties[at, leaf] != count
    best[at, leaf], ties[at, leaf] = highest, count
    return changed


def join(knot: int, at: int, best: Int32s, ties: Int32s) -> bool:
    """Put a knot's two halves together; tell whether it has changed."""
    left, right = best[at, 2 * knot], best[at, 2 * knot + 1]
    highest, count = left, ties[at, 2 * knot]
    if right > left:
        highest, count = right, ties[at, 2 * knot + 1]
    elif right == left:
        count += ties[at, 2 * knot + 1]
    changed = best[at, knot] != highest or ties[at, knot] != count
    best[at, knot], ties[at, knot] = highest, count
    return changed


def refresh(position: int, slot: Int32s, value: Int32s, at: int, best: Int32s, ties: Int32s) -> None:
    """Mend the tree of one slot after a position came, went, or changed its value."""
    block = position >> SHIFT
    if refresh_block(block, slot, value, at, best, ties):
        knot = ((best.shape[1] >> 1) + block) >> 1
        while knot > 0 and join(knot, at, best, ties):
            knot >>= 1


def build(slot: Int32s, value: Int32s, n_slots: int, best: Int32s, ties: Int32s) -> None:
    """Build all trees."""
    best[:] = CLOSED
    ties[:] = 0
    n_leaves = best.shape[1] >> 1
    for position in range(len(slot)):
        at = slot[position]
        if at >= 0:
            leaf = n_leaves + (position >> SHIFT)
            if value[position] > best[at, leaf]:
                best[at, leaf], ties[at, leaf] = value[position], 1
            elif value[position] == best[at, leaf]:
                ties[at, leaf] += 1
    for at in range(n_slots):
        for knot in range(n_leaves - 1, 0, -1):
            join(knot, at, best, ties)


def kth(
    k: int, tied: IntColumn, wanted: IntColumn, slot: Int32s, value: Int32s, best: Int32s, ties: Int32s
) -> int:
    """Return the k-th position, in node order, of those that have the wanted value of their slot."""
    n_leaves = best.shape[1] >> 1
    knot = 1
    while knot < n_leaves:
        knot *= 2
        count = 0
        for i in range(len(tied)):
            if best[tied[i], knot] == wanted[i]:
                count += ties[tied[i], knot]
        if k >= count:
            k -= count
            knot += 1
    block = knot - n_leaves
    for position in range(block << SHIFT, min((block + 1) << SHIFT, len(slot))):
        for i in range(len(tied)):
            if slot[position] == tied[i] and value[position] == wanted[i]:
                if k == 0:
                    return position
                k -= 1
    return -1


def slot_for(name: int, classes: IntColumn, sizes: Int32s) -> int:
    """Return where a class stands, or a free slot for it; -1 if there is none."""
    free = -1
    for at in range(len(classes)):
        if sizes[at] > 0 and classes[at] == name:
            return at
        if sizes[at] == 0 and free < 0:
            free = at
    return free


def shut(position: int, part: Classed, board: Board) -> None:
    """Close a position for good."""
    at = board.slot[position]
    if board.feasible[at]:
        recount(position, -1, board.kinds, board.histogram)
    board.value[position], board.slot[position] = CLOSED, -1
    board.sizes[at] -= 1
    board.state[N_OPEN] -= 1
    close(part, board.rows[position])
    refresh(position, board.slot, board.value, at, board.best, board.ties)


def run(board: Board, part: Classed, weights: IntColumn, n: int, in_turn: bool) -> int:
    """Place pods until ``n`` are placed or something is missing; returns why it stopped.

    Parameters
    ----------
    weights : int64[n_scores]
        Of the part's scores.
    in_turn : bool
        Ties are taken round-robin; else the first one by name.
    """
    state, classes, sizes, best, ties = board.state, board.classes, board.sizes, board.best, board.ties
    value, slot, feasible = board.value, board.slot, board.feasible
    kinds, histogram = board.kinds, board.histogram
    slots, names, rows_of = np.empty_like(classes), np.empty_like(classes), np.empty_like(sizes)
    tied, wanted = np.empty_like(classes), np.empty_like(classes)
    has_moved = True
    while state[N_DONE] < n:
        if state[PENDING] >= 0:
            position = state[PENDING]
            local = next_local(
                position, board.placed[position], board.levels, board.run_start, board.run_at, board.runs
            )
            if local == MISSING:
                return LEVEL
            if local == CLOSED:
                state[PENDING] = -1
                shut(position, part, board)
                has_moved = True
            else:
                # Inline: handing all arrays to a function takes longer than what it does.
                at = to = slot[position]
                if len(classes) > 1:
                    name = class_of(part, board.rows[position])
                    if classes[at] != name:
                        to = slot_for(name, classes, sizes)
                        if to < 0:
                            return CROWDED
                        if sizes[to] == 0:
                            classes[to], feasible[to] = name, False
                        if feasible[to] != feasible[at]:
                            recount(position, 1 if feasible[to] else -1, kinds, histogram)
                            has_moved = True
                        sizes[to] += 1
                        sizes[at] -= 1
                        slot[position] = to
                value[position] = local + board.constant[position]
                if to != at:
                    refresh(position, slot, value, at, best, ties)
                refresh(position, slot, value, to, best, ties)
                state[PENDING] = -1
        if state[N_OPEN] == 0:
            return DONE
        done = state[N_DONE]
        n_live = 0
        for at in range(len(classes)):
            if sizes[at] > 0:
                slots[n_live], names[n_live], rows_of[n_live] = at, classes[at], sizes[at]
                n_live += 1
        scores = table(part, names[:n_live], rows_of[:n_live])
        n_feasible = 0
        for i in range(n_live):
            at, fits = slots[i], scores[0, i] != SHUT
            n_feasible += rows_of[i] if fits else 0
            if fits != feasible[at]:
                feasible[at] = fits
                recount_class(at, 1 if fits else -1, slot, kinds, histogram)
                has_moved = True
        if n_feasible == 0:
            return DONE
        if has_moved and is_stale(histogram, board.extremes):
            return STALE
        has_moved = False
        top, count, n_tied = CLOSED - 1, 0, 0
        for i in range(n_live):
            if not feasible[slots[i]]:
                continue
            total = best[slots[i], 1]
            for j in range(len(weights)):
                total += weights[j] * scores[j, i]
            if total > top:
                top, count, n_tied = total, 0, 0
            if total == top:
                count += ties[slots[i], 1]
                tied[n_tied], wanted[n_tied] = slots[i], best[slots[i], 1]
                n_tied += 1
        k = state[COUNTER] % count if in_turn else 0
        position = kth(k, tied[:n_tied], wanted[:n_tied], slot, value, best, ties)
        board.chosen[done], board.total[done] = position, top
        board.n_feasible[done] = n_feasible
        for i in range(n_live):
            if slots[i] == slot[position]:
                # One by one: an assignment of slices would compile what tells of their shapes, too.
                for j in range(len(weights)):
                    board.class_score[j, done] = scores[j, i]
        state[N_DONE] += 1
        state[COUNTER] += 1
        state[PENDING] = position
        board.placed[position] += 1
        place(part, board.rows[position])
    return DONE
