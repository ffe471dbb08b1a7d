"""Who can stay on a node beside the pod, as far as resources tell. Knows no cluster."""

from collections.abc import Callable
from operator import le, sub

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
        # Those with many pods first, so that what takes part in a turn is a slice.
        segments = segments[np.argsort(-victims.counts[segments], kind="stable")]
        counts, starts, room = victims.counts[segments], victims.starts[segments], self._room[:, segments]
        for turn in range(int(counts.max(initial=0))):
            n = int(np.searchsorted(-counts, -turn))
            places = turns[starts[:n] + turn]
            needs = self._needs[:, places]
            kept = np.logical_and.reduce(needs <= room[:, :n])
            needs *= kept
            room[:, :n] -= needs
            self.goes[places] = ~kept

    def in_turn(self, segment: int, accepts: Callable[[int], bool]) -> None:
        """Keep what there is room for and ``accepts`` says yes to, given a pod's id, in one segment."""
        victims, start = self.victims, int(self.victims.starts[segment])
        places = victims.turns[start : start + int(victims.counts[segment])]
        room: list[int] = self._room[:, segment].tolist()
        needs: list[list[int]] = self._needs[:, places].T.tolist()
        ids: list[int] = victims.ids[places].tolist()
        for place, pod, need in zip(places.tolist(), ids, needs, strict=True):
            if all(map(le, need, room)) and accepts(pod):
                room = list(map(sub, room, need))
                self.goes[place] = False
