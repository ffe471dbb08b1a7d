"""Which of the best nodes is taken."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import IntColumn

TieRule = Literal["round-robin", "random", "name"]


@dataclass(slots=True)
class TieBreaker:
    """Takes one of several rows that share the highest total.

    Attributes
    ----------
    counter : int
        Goes up by one with each decision that found a node; round-robin takes index ``counter mod n``.
    seed : int
        Of the random rule, which draws anew for each value of the counter: the same counter and seed, the same choice.
    """

    rule: TieRule = "round-robin"
    seed: int = 0
    counter: int = field(default=0)

    def take(self, tied: NDArray[np.intp], rank: IntColumn) -> int:
        """Return one of the tied rows, counted in node order (by name), and move the counter on."""
        index = self.index(len(tied))
        if len(tied) == 1:
            return int(tied[0])
        ranks = rank[tied]
        if (ranks[1:] > ranks[:-1]).all():
            return int(tied[index])
        return int(tied[np.argsort(ranks)[index]])

    def index(self, n: int) -> int:
        """Return which of ``n`` rows in node order is taken, and move the counter on."""
        match self.rule:
            case "round-robin":
                index = self.counter % n
            case "random":
                index = int(np.random.default_rng((self.seed, self.counter)).integers(n))
            case "name":
                index = 0
        self.counter += 1
        return index
