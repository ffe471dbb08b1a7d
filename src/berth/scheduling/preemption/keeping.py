"""Who can stay on a node beside the pod, as far as resources tell. Knows no cluster."""

import numpy as np
from numpy.typing import NDArray

from berth.scheduling.preemption.victims import Victims


class Keeping:
    """Who is kept and who goes, as far as resources tell.

    Parameters
    ----------
    room : int64[n_terms, n_segments]
        What is left of each resource.
    needs : int64[n_terms, n]
        What each pod holds of it.
    """

    def __init__(self, victims: Victims, room: NDArray[np.int64], needs: NDArray[np.int64]) -> None:
        self.victims, self._room, self._needs = victims, room, needs
        self.goes = np.ones(len(victims.ids), dtype=np.bool_)

    def in_bulk(self, segments: NDArray[np.intp]) -> None:
        """Keep what there is room for, in all segments side by side: in each one pod after another."""
        victims, turns = self.victims, self.victims.turns
        for turn in range(int(victims.counts[segments].max(initial=0))):
            segments = segments[victims.counts[segments] > turn]
            places = turns[victims.starts[segments] + turn]
            needs = self._needs[:, places]
            kept = (needs <= self._room[:, segments]).all(axis=0)
            self._room[:, segments] -= needs * kept
            self.goes[places] = ~kept

    def turns(self, segment: int) -> list[int]:
        """Return the places of a segment's pods in the order in which they are tried."""
        start, count = int(self.victims.starts[segment]), int(self.victims.counts[segment])
        places: list[int] = self.victims.turns[start : start + count].tolist()
        return places

    def has_room(self, segment: int, place: int) -> bool:
        """Tell whether there is room for a pod."""
        return bool((self._needs[:, place] <= self._room[:, segment]).all())

    def keep(self, segment: int, place: int) -> None:
        """Keep a pod."""
        self._room[:, segment] -= self._needs[:, place]
        self.goes[place] = False
