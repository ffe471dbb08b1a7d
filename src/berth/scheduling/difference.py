"""What changes for the pods of a cluster under another release or profile. Each side has a cluster of its own.

Knows nothing of snapshots and configuration files.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import FITS
from berth.framework.profile import Profile
from berth.objects.base import ObjectMeta
from berth.objects.pods import Pod
from berth.scheduling.decide import failed
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.evaluations import Evaluations

FITS_ANYWHERE, FITS_OWN_NODE, BEST_NODES = "fits anywhere", "fits its own node", "best nodes"
_NO_PROFILE = "no profile for its scheduler"

PodName = tuple[str, str]
ProfileOf = Callable[[str], Profile | None]
"""The profile for a pod's ``schedulerName``; None if no scheduler of this configuration would look at it."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Where a pod could go.

    Attributes
    ----------
    best : tuple of str
        The nodes that share the highest total, sorted; empty if none fits.
    reason : str or None
        Why none fits.
    fits_own_node : bool or None
        None for a pod without a node.
    own_reasons : tuple of str
        Why its own node does not fit.
    """

    best: tuple[str, ...]
    reason: str | None
    fits_own_node: bool | None = None
    own_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """A pod that is judged differently, in one or more respects (`what`)."""

    namespace: str
    name: str
    node: str | None
    what: tuple[str, ...]
    before: Judgement
    after: Judgement


class Judge:
    """Judges the pods of a cluster, each as if it were not there. Leaves the cluster as it was."""

    def __init__(self, cluster: Cluster, profile_of: ProfileOf) -> None:
        self._cluster = cluster
        self._profile_of = profile_of
        self._evaluations: dict[int, Evaluations] = {}
        self._judged: dict[tuple[object, ...], Judgement] = {}
        self._labels = cluster.label_sets.all()

    def pods(self, *, pending: bool, namespace: str | None) -> dict[PodName, int]:
        """Return the pods that have not come to their end, by namespace and name; only those without a node if asked."""
        table = self._cluster.pods
        wanted = table.active & table.alive
        if pending:
            wanted = wanted & (table.column("node_name_id") == NONE)
        found: dict[PodName, int] = {}
        for pod in np.flatnonzero(wanted).tolist():
            values = table.get(pod)
            name = self._cluster.namespaces.items[values.namespace_id]
            if namespace in (None, name):
                found[name, values.name] = pod
        return found

    def node_of(self, pod: int) -> str | None:
        """Return the name of a pod's node."""
        row = int(self._cluster.pods.node_row[pod])
        return self._cluster.nodes.names[row] if row != NONE else None

    def judge(self, pod: int) -> Judgement:
        """Judge a pod; those of one shape on one node are judged once."""
        incoming = self._incoming(pod)
        profile = self._profile_of(incoming.info.spec.scheduler_name)
        if profile is None:
            return Judgement((), _NO_PROFILE)
        row = int(self._cluster.pods.node_row[pod])
        key = (incoming.shape, row, id(profile))
        known = self._judged.get(key)
        if known is None:
            known = self._judged[key] = self._judge_without(pod, incoming, profile, row)
        return known

    def _judge_without(self, pod: int, incoming: Incoming, profile: Profile, row: int) -> Judgement:
        kept = self._evaluations.setdefault(id(profile), Evaluations(profile, self._cluster))
        values = self._cluster.pods.get(pod)
        self._cluster.remove_pod(pod)
        try:
            evaluation = kept.of(incoming)
            return _judgement(evaluation, row)
        finally:
            self._cluster.add_pod(values)

    def _incoming(self, pod: int) -> Incoming:
        cluster = self._cluster
        values = cluster.pods.get(pod)
        meta = ObjectMeta(
            name=values.name,
            namespace=cluster.namespaces.items[values.namespace_id],
            uid=values.uid,
            labels=self._labels[values.labels_id],
            owner_references=cluster.owner_sets.items[values.owner_id],
        )
        spec = msgspec.structs.replace(cluster.specs[values.spec_id].spec, node_name="")
        return cluster.incoming(Pod(metadata=meta, spec=spec))


def differences(before: Judge, after: Judge, pods: dict[PodName, int]) -> Iterator[Difference | None]:
    """Judge pods on both sides, in order of their names; yield what changes for each, None where nothing does.

    Parameters
    ----------
    pods : dict of name to int
        Pods of the first side; those that the second does not have are passed over.
    """
    others = after.pods(pending=False, namespace=None)
    for (namespace, name), pod in sorted(pods.items()):
        other = others.get((namespace, name))
        if other is None:
            yield None
            continue
        first, second = before.judge(pod), after.judge(other)
        what = _what_changes(first, second)
        node = before.node_of(pod)
        yield Difference(namespace, name, node, what, first, second) if what else None


def _what_changes(before: Judgement, after: Judgement) -> tuple[str, ...]:
    what = []
    if bool(before.best) != bool(after.best):
        what.append(FITS_ANYWHERE)
    if before.fits_own_node != after.fits_own_node:
        what.append(FITS_OWN_NODE)
    if before.best and after.best and before.best != after.best:
        what.append(BEST_NODES)
    return tuple(what)


def _judgement(evaluation: Evaluation, row: int) -> Judgement:
    evaluation.mend()
    failure = failed(evaluation)
    fits_own = bool(evaluation.fits[row]) if row != NONE else None
    own_reasons = _own_reasons(evaluation, row) if fits_own is False else ()
    if failure is not None:
        return Judgement((), failure.reason, fits_own, own_reasons)
    rows = np.flatnonzero(evaluation.fits)
    _, total = evaluation.weigh(rows)
    names = evaluation.cluster.nodes.names
    best = tuple(sorted(names[one] for one in rows[total == total.max()].tolist()))
    return Judgement(best, None, fits_own, own_reasons)


def _own_reasons(evaluation: Evaluation, row: int) -> tuple[str, ...]:
    """Return why one node does not fit."""
    before = evaluation.before
    if before.error is not None or before.rejection:
        return before.rejection or (str(before.error),)
    if not evaluation.asked()[row]:
        left_out = before.names is not None
        return (
            (before.left_out,) if left_out else ("the release does not look at the node in this condition",)
        )
    reasons: list[str] = []
    for i, codes in enumerate(evaluation.codes):
        code = int(codes[row])
        if code != FITS:
            reasons += evaluation.profile.reported(evaluation.reasons(i, code))
            if not evaluation.profile.always_check_all:
                break
    return tuple(reasons)
