"""The mixed stream, compiled: rules of resources for one row and all shapes, and a tournament tree with a lane a shape.

Plain Python over arrays, which Numba compiles; `berth.scheduling.stream_twin` does the same in NumPy.

Where spreading counts, a shape has a lane for each domain and each number of pods that its rows have; a lane's rows then
differ in nothing but their base. A tree node keeps of each lane the best base among its rows, and how many rows have it.
"""

from collections.abc import Callable
from math import floor
from typing import Any, NamedTuple

import numpy as np

from berth.plugins.pod_topology_spread.logarithm import log
from berth.scheduling.compiled import Group
from berth.scheduling.stream_columns import FAN, Columns, Counts, Output, Rules, Tree

DONE, STALE, OVERFLOWN = 0, 1, 2
"""Why a run stops: all is decided, scores have to be normalised again, a count has no lane."""


def _mean_allocated(q: int, row: int, most: bool, rules: Rules, columns: Columns, total: Any) -> None:
    n_shapes = total.shape[0]
    scores, weights = np.zeros(n_shapes), np.zeros(n_shapes)
    top, weight = rules.maxima[q], rules.weights[q]
    for j in range(rules.columns.shape[1]):
        k = rules.columns[q, j]
        if k < 0 or columns.allocatable[row, k] == 0:
            continue
        offered, used = columns.allocatable[row, k], columns.used[row, k]
        asked, share = rules.asked[q, j], rules.shares[q, j]
        for s in range(n_shapes):
            requested = used + asked[s]
            if most:
                score = floor(min(requested, offered) * top / offered)
            else:
                score = floor(max(offered - requested, 0.0) * top / offered)
            scores[s] += score * share[s]
            weights[s] += share[s]
    for s in range(n_shapes):
        total[s] += weight[s] * floor(scores[s] / max(weights[s], 1.0))


def _mean_requested(q: int, row: int, most: bool, rules: Rules, columns: Columns, total: Any) -> None:
    n_shapes = total.shape[0]
    scores = np.zeros(n_shapes)
    top, weight = rules.maxima[q], rules.weights[q]
    for j in range(2):
        k = rules.columns[q, j]
        offered, used = columns.allocatable[row, k], columns.used[row, k]
        if offered <= 0:
            continue
        asked = rules.asked[q, j]
        for s in range(n_shapes):
            requested = used + asked[s]
            amount = requested if most else offered - requested
            scores[s] += floor(amount * top / offered) if requested <= offered else 0.0
    for s in range(n_shapes):
        total[s] += weight[s] * floor(scores[s] * 0.5)


def _balanced_shares(q: int, row: int, rules: Rules, columns: Columns, total: Any) -> None:
    a, b = rules.columns[q, 0], rules.columns[q, 1]
    of_a, of_b = columns.allocatable[row, a], columns.allocatable[row, b]
    used_a, used_b = columns.used[row, a], columns.used[row, b]
    top, weight, asked = rules.maxima[q], rules.weights[q], rules.asked[q]
    for s in range(total.shape[0]):
        share_a = (used_a + asked[0, s]) / of_a if of_a != 0 else 1.0
        share_b = (used_b + asked[1, s]) / of_b if of_b != 0 else 1.0
        score = floor((1.0 - abs(share_a - share_b)) * top)
        total[s] += weight[s] * (score if share_a < 1 and share_b < 1 else 0.0)


def _balanced_gain(q: int, row: int, rules: Rules, columns: Columns, total: Any) -> None:
    a, b = rules.columns[q, 0], rules.columns[q, 1]
    top, weight, asked = rules.maxima[q], rules.weights[q], rules.asked[q]
    half = float(int(top) // 2)
    if a < 0:
        return
    of_a, of_b = columns.allocatable[row, a], columns.allocatable[row, b]
    used_a, used_b = columns.used[row, a], columns.used[row, b]
    if of_a == 0 or of_b == 0:
        for s in range(total.shape[0]):
            total[s] += weight[s] * (half + floor(half * 0.5))
        return
    before = floor((1.0 - abs((min(used_a / of_a, 1.0) - min(used_b / of_b, 1.0)) / 2)) * top)
    for s in range(total.shape[0]):
        share_a, share_b = min((used_a + asked[0, s]) / of_a, 1.0), min((used_b + asked[1, s]) / of_b, 1.0)
        gain = floor((1.0 - abs((share_a - share_b) / 2)) * top) - before
        total[s] += weight[s] * (half + floor((half + gain) * 0.5))


def rescore(row: int, closed: int, rules: Rules, columns: Columns) -> None:
    """Compute a row's base for all shapes: what is local and what is constant."""
    base, fixed = columns.base[row], columns.fixed[columns.kind[row]]
    n_shapes = base.shape[0]
    total = np.zeros(n_shapes)
    fits = np.ones(n_shapes, dtype=np.uint8)
    for k in range(rules.needed.shape[0]):
        free = columns.allocatable[row, k] - columns.used[row, k]
        needed = rules.needed[k]
        for s in range(n_shapes):
            fits[s] &= np.uint8(needed[s] <= free)
    for q in range(rules.kinds.shape[0]):
        kind = rules.kinds[q]
        if kind in (1, 2):
            _mean_allocated(q, row, kind == 2, rules, columns, total)
        elif kind == 3:
            _balanced_gain(q, row, rules, columns, total)
        elif kind in (4, 5):
            _mean_requested(q, row, kind == 5, rules, columns, total)
        else:
            _balanced_shares(q, row, rules, columns, total)
    for s in range(n_shapes):
        is_open = fits[s] != 0 and fixed[s] != closed
        base[s] = fixed[s] + np.int32(total[s]) if is_open else closed


def _contest_rows(
    node: int, zone: int, closed: int, columns: Columns, counts: Counts, best: Any, count: Any
) -> None:
    """Find the best of a lowest node's rows in one domain, by height and shape."""
    n_rows, n_shapes = columns.base.shape
    n_heights = best.shape[0] // n_shapes
    best[:] = closed
    count[:] = 0
    for row in range(node * FAN, min(n_rows, node * FAN + FAN)):
        if counts.domain[row] != zone:
            continue
        base = columns.base[row]
        for height in range(n_heights):
            highest = best[height * n_shapes : (height + 1) * n_shapes]
            times = count[height * n_shapes : (height + 1) * n_shapes]
            for s in range(n_shapes):
                value = base[s]
                if n_heights > 1 and counts.pods[row, s] - counts.lowest[s] != height:
                    value = closed
                times[s] = 1 if value > highest[s] else times[s] + (value == highest[s])
                highest[s] = max(highest[s], value)


def _contest_nodes(first: int, last: int, lane: int, tree: Tree, best: Any, count: Any) -> None:
    """Find the best of a node's children, in a run of lanes."""
    n_lanes = best.shape[0]
    best[:] = tree.best[first, lane : lane + n_lanes]
    count[:] = tree.times[first, lane : lane + n_lanes]
    for child in range(first + 1, last):
        theirs, many = tree.best[child, lane : lane + n_lanes], tree.times[child, lane : lane + n_lanes]
        for i in range(n_lanes):
            value, n = theirs[i], many[i]
            count[i] = n if value > best[i] else count[i] + (n if value == best[i] else 0)
            best[i] = max(best[i], value)


def _climb(row: int, closed: int, columns: Columns, counts: Counts, tree: Tree) -> None:
    """Bring the row's ancestors up to date, as far up as anything changes."""
    width = tree.best.shape[1] // counts.n_domains
    zone = counts.domain[row]
    lane = zone * width
    best = np.empty(width, dtype=tree.best.dtype)
    count = np.empty(width, dtype=np.int32)
    node = row
    for level in range(len(tree.starts) - 1):
        start = tree.starts[level]
        node //= FAN
        if level == 0:
            _contest_rows(node, zone, closed, columns, counts, best, count)
        else:
            below = tree.starts[level - 1]
            _contest_nodes(below + node * FAN, min(start, below + node * FAN + FAN), lane, tree, best, count)
        old, many = (
            tree.best[start + node, lane : lane + width],
            tree.times[start + node, lane : lane + width],
        )
        differs = np.int64(0)
        for i in range(width):
            differs |= np.int64(old[i]) ^ np.int64(best[i])
            differs |= np.int64(many[i]) ^ np.int64(count[i])
        if not differs:
            return
        old[:] = best
        many[:] = count


def rescore_all(closed: int, rules: Rules, columns: Columns) -> None:
    """Compute all bases."""
    for row in range(columns.base.shape[0]):
        rescore(row, closed, rules, columns)


def grow(closed: int, columns: Columns, counts: Counts, tree: Tree) -> None:
    """Compute the whole tree."""
    width = tree.best.shape[1] // counts.n_domains
    best = np.empty(width, dtype=tree.best.dtype)
    count = np.empty(width, dtype=np.int32)
    for level in range(len(tree.starts) - 1):
        start, stop = tree.starts[level], tree.starts[level + 1]
        for node in range(stop - start):
            for zone in range(counts.n_domains):
                lane = zone * width
                if level == 0:
                    _contest_rows(node, zone, closed, columns, counts, best, count)
                else:
                    below = tree.starts[level - 1] + node * FAN
                    _contest_nodes(below, min(start, below + FAN), lane, tree, best, count)
                tree.best[start + node, lane : lane + width] = best
                tree.times[start + node, lane : lane + width] = count


def _spread_scores(
    s: int, closed: int, n_shapes: int, counts: Counts, tree: Tree, n_feasible: int, add: Any
) -> None:
    """Compute what each of a shape's lanes adds to its rows' base (int64[n_domains * n_heights])."""
    add[:] = 0
    if counts.weights[s] == 0:
        return
    n_heights = len(add) // counts.n_domains
    root = tree.best[tree.best.shape[0] - 1]
    n_live = 0
    for zone in range(counts.n_domains):
        for height in range(n_heights):
            if root[(zone * n_heights + height) * n_shapes + s] != closed:
                n_live += 1
                break
    by_host, by_domain = log(float(n_feasible + 2)), log(float(n_live + 2))
    highest, lowest = -1, 1 << 60
    for zone in range(counts.n_domains):
        for height in range(n_heights):
            lane = zone * n_heights + height
            if root[lane * n_shapes + s] == closed:
                continue
            score = 0.0
            if counts.host_skew[s] > 0:
                score += (counts.lowest[s] + height) * by_host + (counts.host_skew[s] - 1.0)
            if counts.domain_skew[s] > 0 and counts.is_named[zone]:
                score += counts.per_domain[zone, s] * by_domain + (counts.domain_skew[s] - 1.0)
            # Halves away from zero; no score is below it.
            whole = int(score)
            whole += score - whole >= 0.5
            add[lane] = whole
            highest, lowest = max(highest, whole), min(lowest, whole)
    top = counts.maxima[s]
    for lane in range(len(add)):
        flipped = top * (highest + lowest - add[lane]) // highest if highest > 0 else top
        add[lane] = counts.weights[s] * flipped


def _choose(
    s: int, turn: int, closed: int, columns: Columns, counts: Counts, tree: Tree, add: Any
) -> tuple[int, int]:
    """Return the row whose turn it is among the best for a shape, and its total."""
    n_rows, n_shapes = columns.base.shape
    n_heights = len(add) // counts.n_domains
    node = tree.best.shape[0] - 1
    top = -(1 << 60)
    for lane in range(len(add)):
        value = np.int64(tree.best[node, lane * n_shapes + s])
        if value != closed and value + add[lane] > top:
            top = value + add[lane]
    n_tied = 0
    for lane in range(len(add)):
        # From here on: the base that a row of the lane needs to be among the best.
        add[lane] = top - add[lane]
        if tree.best[node, lane * n_shapes + s] == add[lane]:
            n_tied += tree.times[node, lane * n_shapes + s]
    left = turn % n_tied if turn >= 0 else 0
    node = 0
    for level in range(len(tree.starts) - 3, -1, -1):
        start, stop = tree.starts[level], tree.starts[level + 1]
        for child in range(start + node * FAN, min(stop, start + node * FAN + FAN)):
            n_here = 0
            for lane in range(len(add)):
                if tree.best[child, lane * n_shapes + s] == add[lane]:
                    n_here += tree.times[child, lane * n_shapes + s]
            if left < n_here:
                node = child - start
                break
            left -= n_here
    for row in range(node * FAN, min(n_rows, node * FAN + FAN)):
        height = counts.pods[row, s] - counts.lowest[s] if n_heights > 1 else 0
        value = columns.base[row, s]
        if value != closed and value == add[counts.domain[row] * n_heights + height]:
            if left == 0:
                return row, top
            left -= 1
    return -1, top


def place(
    row: int, shape: int, closed: int, rules: Rules, columns: Columns, counts: Counts, tree: Tree
) -> int:
    """Count a pod of a shape on a row, and bring everything up to date; return what has to be done first, or `DONE`."""
    n_shapes = columns.base.shape[1]
    for k in range(columns.used.shape[1]):
        columns.used[row, k] += rules.held[shape, k]
    status = DONE
    n_heights = tree.best.shape[1] // (counts.n_domains * n_shapes)
    kind, base = columns.kind[row], columns.base[row]
    before = base.copy()
    rescore(row, closed, rules, columns)
    if counts.adds.shape[0]:
        # Rows of matrices, not their entries: a number that might be negative would be looked at in every step.
        adds, eligible, pods = counts.adds[shape], counts.eligible[kind], counts.pods[row]
        per_domain = counts.per_domain[counts.domain[row]]
        for s in range(n_shapes):
            if adds[s]:
                pods[s] += 1
                per_domain[s] += eligible[s]
                if pods[s] - counts.lowest[s] >= n_heights and base[s] != closed:
                    status = OVERFLOWN
    n_closing = 0
    for s in range(n_shapes):
        if before[s] != closed and base[s] == closed:
            columns.n_feasible[s] -= 1
            n_closing += 1
    if n_closing:
        for e in range(columns.extremes.shape[0]):
            holds, n_extreme = columns.extremes[e, kind], columns.n_extreme[e]
            for s in range(n_shapes):
                if before[s] != closed and base[s] == closed and holds[s]:
                    n_extreme[s] -= 1
                    if n_extreme[s] == 0:
                        columns.is_stale[s] = True
    _climb(row, closed, columns, counts, tree)
    if status == DONE and columns.is_stale.any():
        return STALE
    return status


def run(
    order: Any, first: int, last: int, turn: int, closed: int,
    rules: Rules, columns: Columns, counts: Counts, tree: Tree, output: Output,
) -> tuple[int, int, int]:  # fmt: skip
    """Decide for the pods of ``order[first:last]``; return where it stopped, whose turn it is then, and why."""
    n_shapes = columns.base.shape[1]
    add = np.zeros(tree.best.shape[1] // n_shapes, dtype=np.int64)
    for i in range(first, last):
        s = order[i]
        n_feasible = columns.n_feasible[s]
        output.n_feasible[i] = n_feasible
        if n_feasible == 0:
            continue
        _spread_scores(s, closed, n_shapes, counts, tree, n_feasible, add)
        row, total = _choose(s, turn, closed, columns, counts, tree, add)
        output.row[i] = row
        output.total[i] = total
        if turn >= 0:
            turn += 1
        status = place(row, s, closed, rules, columns, counts, tree)
        if status != DONE:
            return i + 1, turn, status
    return last, turn, DONE


class StreamKernels(NamedTuple):
    """The functions of this module that are called from outside."""

    rescore_all: Callable[..., None]
    grow: Callable[..., None]
    place: Callable[..., int]
    run: Callable[..., tuple[int, int, int]]


STREAM = Group("stream", StreamKernels(rescore_all, grow, place, run), n_worth_loading=20_000)
