"""The evaluations that are kept, by shape; those not used for longest go when they take too much memory."""

from collections import OrderedDict
from collections.abc import Sequence

from berth.cluster.cluster import Cluster, Incoming
from berth.framework.profile import Profile
from berth.scheduling.evaluation import Evaluation

MAX_BYTES = 64 << 20


class Evaluations:
    """One evaluation a shape, for one profile on one cluster."""

    def __init__(self, profile: Profile, cluster: Cluster, max_bytes: int = MAX_BYTES) -> None:
        self.profile = profile
        self.cluster = cluster
        self._max_bytes = max_bytes
        self._kept: OrderedDict[tuple[int, ...], Evaluation] = OrderedDict()

    def of(self, pod: Incoming) -> Evaluation:
        """Return the evaluation of a pod's shape, as old as it was left: deciding mends it."""
        kept = self._kept.get(pod.shape)
        if kept is None:
            kept = self._kept[pod.shape] = Evaluation(self.profile, pod, self.cluster)
            while len(self._kept) > self._n_max():
                self._kept.popitem(last=False)
        self._kept.move_to_end(pod.shape)
        return kept

    def each(self, pods: Sequence[Incoming]) -> "EvaluationsOfEach":
        """Return the evaluations of many shapes, each made when it is asked for."""
        return EvaluationsOfEach(self, pods, are_kept=len(pods) <= self._n_max())

    def _n_max(self) -> int:
        n_columns = len(self.profile.filters) + len(self.profile.scores) + 1
        return max(1, self._max_bytes // max(1, self.cluster.nodes.n_rows * n_columns * 8))


class EvaluationsOfEach(Sequence[Evaluation]):
    """The evaluations of many shapes, made when they are asked for; kept only if there is room for all of them."""

    def __init__(self, evaluations: Evaluations, pods: Sequence[Incoming], *, are_kept: bool) -> None:
        self._evaluations = evaluations
        self._pods = pods
        self._are_kept = are_kept

    def __len__(self) -> int:
        return len(self._pods)

    def __getitem__(self, index: int) -> Evaluation:  # type: ignore[override]
        """Evaluate one shape."""
        evaluations = self._evaluations
        if self._are_kept:
            return evaluations.of(self._pods[index])
        return Evaluation(evaluations.profile, self._pods[index], evaluations.cluster)
