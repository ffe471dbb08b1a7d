"""A node that has the pod's images already is better, the more bytes of them it has: ImageLocality.

An image counts for less where few nodes have it, so that not all pods of a kind go to the same few. Of an image that has
different sizes on nodes the first node's holds for all, as in upstream's cache. Source: 1.36,
``plugins/imagelocality/image_locality.go``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.plugin import BatchKind, ScorePlugin
from berth.objects.pods import PodSpec

MEBIBYTE = 1 << 20
LEAST = 23 * MEBIBYTE
"""What the sum of images has to exceed to count at all. [bytes]"""
MOST = 1000 * MEBIBYTE
"""From where on more does not count. [bytes]"""


@dataclass(frozen=True, slots=True)
class ImageLocality(ScorePlugin[IntColumn]):
    """Scores the bytes of the pod's images that a node has, each scaled by the share of nodes that have it.

    Attributes
    ----------
    init_containers, volumes : bool
        Whether images of init containers, and those mounted as volumes, count.
    per_container : bool
        Whether `MOST` holds for each container, and not for the pod.
    """

    maximum: int
    init_containers: bool = True
    volumes: bool = True
    per_container: bool = True

    name = "ImageLocality"

    def prepare(self, pod: Incoming, cluster: Cluster) -> IntColumn:
        spec = pod.info.spec
        sums = np.zeros(cluster.nodes.n_rows, dtype=np.int64)
        index = ImageIndex.of(cluster)
        for image in self._images(spec):
            rows, size = index.find(cluster, image)
            share = len(rows) / len(cluster.nodes) if len(rows) else 0.0
            sums[rows] += int(float(size) * share)
        n_containers = len(spec.containers) + (len(spec.init_containers) if self.init_containers else 0)
        return locality_score(sums, MOST * (n_containers if self.per_container else 1), self.maximum)

    def mend(self, state: IntColumn, changes: Changes) -> Rows | None:
        return None if changes.nodes else np.empty(0, dtype=np.intp)

    def score(self, state: IntColumn, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return state[rows].copy()

    def batch(self, state: IntColumn, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT

    def _images(self, spec: PodSpec) -> list[str]:
        images = [container.image for container in spec.containers]
        if self.init_containers:
            images += [container.image for container in spec.init_containers]
        if self.volumes:
            images += [volume.image.reference for volume in spec.volumes if volume.image]
        return [normalized(image) for image in images]


def locality_score(sums: IntColumn, most: int, maximum: int) -> IntColumn:
    """Scale sums of bytes from 0 (`LEAST` or less) to ``maximum`` (``most`` or more); a pod of no containers gets 0.

    Parameters
    ----------
    sums : int64[n_rows]
        [bytes]
    """
    if most <= LEAST:
        return np.zeros_like(sums)
    score: IntColumn = maximum * (np.clip(sums, LEAST, most) - LEAST) // (most - LEAST)
    return score


def normalized(image: str) -> str:
    """Return an image's name with the tag ``latest`` if it has none."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


class ImageIndex:
    """For every distinct list of images that nodes have, the sizes by name."""

    def __init__(self) -> None:
        self._sizes: list[dict[str, int]] = []

    @classmethod
    def of(cls, cluster: Cluster) -> "ImageIndex":
        """Return the cluster's index, up to date."""
        index: ImageIndex = cluster.derived.setdefault((cls,), cls())
        for images in cluster.nodes.image_sets.items[len(index._sizes) :]:
            # Of an image that is listed twice the first size counts.
            listed = [(name, image.size_bytes) for image in images for name in image.names]
            index._sizes.append(dict(reversed(listed)))
        return index

    def find(self, cluster: Cluster, image: str) -> tuple[NDArray[np.intp], int]:
        """Return the rows of the nodes that have an image, and its size. [bytes]"""
        nodes = cluster.nodes
        found = np.array([image in sizes for sizes in self._sizes], dtype=np.bool_)
        if not found.any():
            return np.empty(0, dtype=np.intp), 0
        rows = np.flatnonzero(found[nodes.images_id] & nodes.alive)
        size = self._sizes[nodes.images_id[rows[0]]][image] if len(rows) else 0
        return rows, size
