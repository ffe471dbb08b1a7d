"""The columns of a mixed stream: what its live shapes need of every node, narrow and in node order."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FAN = 16
"""How many children a node of the tournament tree has."""


class Rules(NamedTuple):
    """The shapes' rules of resources; amounts are whole numbers as float64, exact below 2**53.

    Attributes
    ----------
    needed : float64[n_columns, n_shapes]
        What has to be free, -inf where it does not matter.
    kinds, maxima : int64[n_rules], float64[n_rules]
        Each score's kind and highest score.
    weights : float64[n_rules, n_shapes]
        Its weight in the total, 0 where it is off.
    columns : int64[n_rules, n_terms]
        The column of each term, -1 where there is none.
    asked, shares : float64[n_rules, n_terms, n_shapes]
        What the pod adds, and the term's weight in the score.
    held : float64[n_all_shapes, n_columns]
        What a pod of any shape of the stream adds to a row that it is placed on.
    """

    needed: NDArray[np.float64]
    kinds: NDArray[np.int64]
    maxima: NDArray[np.float64]
    weights: NDArray[np.float64]
    columns: NDArray[np.int64]
    asked: NDArray[np.float64]
    shares: NDArray[np.float64]
    held: NDArray[np.float64]


class Columns(NamedTuple):
    """Rows in node order.

    Attributes
    ----------
    used, allocatable : float64[n_rows, n_columns]
        By resource.
    kind : int32[n_rows]
        Which rows are alike in all that does not move.
    base : int16 or int32[n_rows, n_shapes]
        The total but for spreading; the lowest number where closed.
    fixed : int16 or int32[n_kinds, n_shapes]
        The part of it that resources do not move; the lowest number where closed whatever is free.
    n_feasible : int64[n_shapes]
        How many rows are open.
    extremes : bool[n_extremes, n_kinds, n_shapes]
        The kinds of rows that hold a highest or lowest raw score which a normalisation hangs on.
    n_extreme : int64[n_extremes, n_shapes]
        How many open rows are of such kinds.
    is_stale : bool[n_shapes]
        The shapes whose ``fixed`` has to be normalised again.
    """

    used: NDArray[np.float64]
    allocatable: NDArray[np.float64]
    kind: NDArray[np.int32]
    base: NDArray[np.signedinteger]
    fixed: NDArray[np.signedinteger]
    n_feasible: NDArray[np.int64]
    extremes: NDArray[np.bool_]
    n_extreme: NDArray[np.int64]
    is_stale: NDArray[np.bool_]


class Counts(NamedTuple):
    """What spreading counts; ``adds`` has no rows where no shape spreads.

    Attributes
    ----------
    n_domains : int
        How many domains there are; one, if none matters.
    domain : int64[n_rows]
        Each row's domain.
    is_named : bool[n_domains]
        Whether the domain is one, and not the rows without any.
    pods : int16[n_rows, n_shapes]
        Counted pods on each row.
    eligible : bool[n_kinds, n_shapes]
        The kinds of rows whose pods count for their domain.
    per_domain : int64[n_domains, n_shapes]
        Counted pods in each domain.
    lowest : int64[n_shapes]
        The count of a shape's first lane.
    adds : bool[n_all_shapes, n_shapes]
        Whether a pod of the first shape counts for the second.
    weights, maxima, host_skew, domain_skew : int64[n_shapes]
        Of the score; a weight of 0 where the shape does not spread, a skew of 0 where a constraint is absent.
    """

    n_domains: int
    domain: NDArray[np.int64]
    is_named: NDArray[np.bool_]
    pods: NDArray[np.int16]
    eligible: NDArray[np.bool_]
    per_domain: NDArray[np.int64]
    lowest: NDArray[np.int64]
    adds: NDArray[np.bool_]
    weights: NDArray[np.int64]
    maxima: NDArray[np.int64]
    host_skew: NDArray[np.int64]
    domain_skew: NDArray[np.int64]


class Tree(NamedTuple):
    """A tournament over rows, with a lane for each (domain, number of pods, shape), in this order.

    Attributes
    ----------
    best : int16 or int32[n_nodes, n_lanes]
        The highest base of the node's rows.
    times : int32[n_nodes, n_lanes]
        How many rows have it.
    starts : int64[n_levels + 1]
        Where each level begins, from the lowest; the last node is the root.
    """

    best: NDArray[np.signedinteger]
    times: NDArray[np.int32]
    starts: NDArray[np.int64]

    @classmethod
    def empty(cls, n_rows: int, n_lanes: int, dtype: type[np.signedinteger]) -> "Tree":
        """Make room for a tree."""
        starts, n = [0], n_rows
        while True:
            n = -(-n // FAN)
            starts.append(starts[-1] + n)
            if n == 1:
                break
        best = np.empty((starts[-1], n_lanes), dtype=dtype)
        return cls(best, np.empty((starts[-1], n_lanes), dtype=np.int32), np.array(starts, dtype=np.int64))


class Output(NamedTuple):
    """What is decided of each pod, -1 where nothing fits."""

    row: NDArray[np.int32]
    total: NDArray[np.int64]
    n_feasible: NDArray[np.int32]

    def after(self, start: int) -> "Output":
        """Return the part for the pods from ``start`` on."""
        return Output(self.row[start:], self.total[start:], self.n_feasible[start:])
