"""ImageLocality, formerly ImageLocalityPriority: the more of the pod's images lie on the node already, the better.

Source: ``priorities/image_locality.go`` of 1.10, 1.13 and 1.17, ``plugins/imagelocality/image_locality.go`` of 1.36, and
``addNodeImageStates`` of the cache.
"""

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.plugin import BatchKind, ScorePlugin

MEGABYTE = 1024 * 1024
MIN_BYTES, MAX_BYTES = 23 * MEGABYTE, 1000 * MEGABYTE
ABSENT = -1


class ImageRule(Enum):
    """What an image on a node counts."""

    OWN_SIZE = "up to 1.10: its size there, if the pod names it as the node does"
    SPREAD = (
        "since 1.12: its size on the first node, times the share of nodes that have it; no tag means latest"
    )


@dataclass(slots=True)
class ImageIndex:
    """Which distinct image sets of nodes have an image: name to (set, bytes). Sets are read once."""

    last_counts: bool
    n_read: int = 0
    sizes: dict[str, dict[int, int]] = field(default_factory=dict)

    def of(self, cluster: Cluster, image: str) -> IntColumn | None:
        """Return an image's bytes on every row, `ABSENT` where it is not (int64[n_rows]); None if it is nowhere."""
        self.update(cluster)
        if image not in self.sizes:
            return None
        per_set = np.full(self.n_read, ABSENT, dtype=np.int64)
        within = self.sizes[image]
        per_set[list(within)] = list(within.values())
        column: IntColumn = np.where(cluster.nodes.alive, per_set[cluster.nodes.images_id], ABSENT)
        return column

    def update(self, cluster: Cluster) -> None:
        """Read the sets that are new."""
        sets = cluster.nodes.image_sets.items
        for number in range(self.n_read, len(sets)):
            for found in sets[number]:
                for name in found.names:
                    within = self.sizes.setdefault(name, {})
                    # A name that is on the node twice: 1.10 takes the last, later releases the first.
                    if self.last_counts or number not in within:
                        within[number] = found.size_bytes
        self.n_read = len(sets)


@dataclass(frozen=True, slots=True)
class ImageLocality(ScorePlugin[IntColumn]):
    """Score the bytes of the pod's images that the node has: 0 up to 23 MB, ``maximum`` from 1000 MB.

    Attributes
    ----------
    all_images : bool
        Images of init containers and those mounted as volumes count as well, and the 1000 MB are for each container,
        init containers included (1.36).
    """

    maximum: int
    rule: ImageRule = ImageRule.SPREAD
    all_images: bool = False

    name = "ImageLocality"
    reads_pods = False

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return not self._index(cluster).sizes

    def prepare(self, pod: Incoming, cluster: Cluster) -> IntColumn:
        nodes = cluster.nodes
        own_size = self.rule is ImageRule.OWN_SIZE
        index = self._index(cluster)
        total = np.zeros(nodes.n_rows, dtype=np.int64)
        spec = pod.info.spec
        images = [container.image for container in spec.containers]
        max_bytes = MAX_BYTES
        if self.all_images:
            images += [container.image for container in spec.init_containers]
            max_bytes *= len(images)
            images += [volume.image.reference for volume in spec.volumes if volume.image]
        for image in images if own_size else map(normalized_name, images):
            size = index.of(cluster, image)
            if size is None:
                continue
            has = size != ABSENT
            if own_size:
                total[has] += size[has]
            elif has.any():
                spread = float(np.count_nonzero(has)) / float(len(nodes))
                total[has] += int(float(size[np.argmax(has)]) * spread)
        return self._scaled(total, max_bytes)

    def mend(self, state: IntColumn, changes: Changes) -> Rows | None:
        # An image that comes to one node is worth more on all of them.
        return None if changes.nodes else np.empty(0, dtype=np.intp)

    def is_idle(self, state: IntColumn) -> bool:
        return not state.any()

    def score(self, state: IntColumn, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return state[rows].copy()

    def batch(self, state: IntColumn, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT

    def _index(self, cluster: Cluster) -> ImageIndex:
        own_size = self.rule is ImageRule.OWN_SIZE
        key = "ImageLocality", own_size
        index: ImageIndex | None = cluster.derived.get(key)
        if index is None:
            index = cluster.derived[key] = ImageIndex(own_size)
        index.update(cluster)
        return index

    def _scaled(self, total: IntColumn, max_bytes: int) -> IntColumn:
        if not max_bytes or not total.any():
            # The range starts above 0 bytes.
            return np.zeros_like(total)
        scaled = self.maximum * (np.clip(total, MIN_BYTES, max_bytes) - MIN_BYTES) // (max_bytes - MIN_BYTES)
        if self.rule is ImageRule.OWN_SIZE:
            # Anything within the range counts 1 more.
            scaled += (total >= MIN_BYTES) & (total < MAX_BYTES)
        return scaled


def normalized_name(image: str) -> str:
    """Return an image's name with the tag ``latest`` if it has none; the port of a registry is no tag."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
