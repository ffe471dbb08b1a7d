"""The evaluations that are kept, by shape; those not used for longest go when they take too much memory."""

from collections import OrderedDict

from berth.cluster.cluster import Cluster, Incoming
from berth.framework.profile import Profile
from berth.scheduling.evaluation import Evaluation

MAX_BYTES = 64 << 20


class Evaluations:
    """One evaluation a shape, for one profile on one cluster."""

    def __init__(self, profile: Profile, cluster: Cluster, max_bytes: int = MAX_BYTES) -> None:
        self._profile = profile
        self._cluster = cluster
        self._max_bytes = max_bytes
        self._kept: OrderedDict[tuple[int, ...], Evaluation] = OrderedDict()

    def of(self, pod: Incoming) -> Evaluation:
        """Return the evaluation of a pod's shape, as old as it was left: deciding mends it."""
        kept = self._kept.get(pod.shape)
        if kept is None:
            kept = self._kept[pod.shape] = Evaluation(self._profile, pod, self._cluster)
            n_columns = len(self._profile.filters) + len(self._profile.scores) + 1
            size = max(1, self._cluster.nodes.n_rows * n_columns * 8)
            while len(self._kept) > max(1, self._max_bytes // size):
                self._kept.popitem(last=False)
        self._kept.move_to_end(pod.shape)
        return kept
