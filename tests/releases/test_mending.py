"""Every predicate and priority of every old release: a kept evaluation, mended through any history, equals a fresh one."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.cluster.arrays import ALL_ROWS, IntColumn
from berth.cluster.cluster import Cluster
from berth.framework.plugin import FITS, BatchKind
from berth.framework.profile import NamedFilter, Profile, WeightedScore
from berth.objects.nodes import Node
from berth.objects.pods import Pod
from berth.objects.workloads import ReplicaSet, Service
from berth.releases import RELEASES
from berth.releases.release import LabelRule, Options, RatioShape, ShapePoint
from berth.scheduling.evaluation import Evaluation
from tests.releases.worlds import AVOID, ZONE, Json, a_node, a_pod

LEGACY = ("1.7", "1.10", "1.13", "1.17")
N_NODES = 4
OPTIONS = Options(
    labels_presence=LabelRule(("disk",), presence=True),
    label_preference=LabelRule(("gpu",), presence=False),
    service_affinity_labels=("disk",),
    service_anti_affinity_label=ZONE,
    ratio=RatioShape(
        (ShapePoint(0, 2), ShapePoint(40, 10), ShapePoint(90, 1)), (("cpu", 1), ("example.com/gpu", 3))
    ),
)
REPLICAS = ("ReplicaSet", "uid-rs")
AVOIDS = '{"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": "uid-rs"}}}]}'
ANTI = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 5,
                "podAffinityTerm": {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": ""},
            }
        ]
    }
}

PODS: tuple[Json, ...] = (
    a_pod(requests={"cpu": "900m", "memory": "1Gi"}, owner=REPLICAS, image="web", limits={"cpu": "3"}),
    a_pod(ports=[{"hostPort": 80}], tolerations=[{"operator": "Exists", "effect": "NoSchedule"}]),
    a_pod(app="db", requests={"cpu": "0", "example.com/gpu": "1"}, nodeSelector={"disk": "ssd"}),
    a_pod(app="db", nodeName="n1", image="db:1"),
    a_pod(affinity=ANTI, tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]),
    a_pod(app="db", volumes=[{"name": "v", "awsElasticBlockStore": {"volumeID": "vol"}}]),
)
NOT_READY = {"conditions": [{"type": "Ready", "status": "False"}, {"type": "DiskPressure", "status": "True"}]}
VARIANTS: tuple[Json, ...] = (
    {},
    {"labels": {"disk": "ssd", ZONE: "a"}, "allocatable": {"example.com/gpu": "2"}},
    {"labels": {"gpu": "", ZONE: "b"}, "annotations": {AVOID: AVOIDS}, "cpu": "1"},
    {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "PreferNoSchedule"}]},
    {"unschedulable": True, "images": [{"names": ["web:latest", "web"], "sizeBytes": 600 << 20}]},
    {**NOT_READY, "images": [{"names": ["db:1"], "sizeBytes": 900 << 20}]},
)

steps = st.one_of(
    st.tuples(st.just("assume"), st.integers(0, len(PODS) - 1), st.integers(0, N_NODES - 1)),
    st.tuples(st.just("forget"), st.integers(0, 20), st.just(0)),
    st.tuples(st.just("change node"), st.integers(0, len(VARIANTS) - 1), st.integers(0, N_NODES - 1)),
    st.tuples(st.just("mend"), st.just(0), st.just(0)),
)


def profile_of(release: str) -> Profile:
    known = RELEASES[release]
    scores = {name: make(OPTIONS) for name, make in known.scores.items()}
    return Profile(
        tuple(NamedFilter(name, make(OPTIONS)) for name, make in known.filters.items()),
        tuple(WeightedScore(name, plugin, 1) for name, plugin in scores.items() if plugin is not None),
    )


class History:
    """A cluster to which things happen, and the evaluation of one pod that is mended along."""

    def __init__(self, release: str, pod: int) -> None:
        self.cluster = Cluster(RELEASES[release].accounting)
        self.cluster.put(
            read(Service, {"metadata": {"namespace": "default"}, "spec": {"selector": {"app": "web"}}})
        )
        replicas = {
            "metadata": {"namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "db"}}},
        }
        self.cluster.put(read(ReplicaSet, replicas))
        for i in range(N_NODES):
            self.put_node(i, i % len(VARIANTS))
        self.pods = [self.cluster.incoming(read(Pod, pod)) for pod in PODS]
        self.profile = profile_of(release)
        self.pod = self.pods[pod]
        self.kept = Evaluation(self.profile, self.pod, self.cluster)
        self.placed: list[int] = []

    def put_node(self, i: int, variant: int) -> None:
        self.cluster.put_node(read(Node, a_node(f"n{i}", **VARIANTS[variant])))

    def step(self, what: str, which: int, row: int) -> None:
        if what == "assume":
            self.placed.append(self.cluster.assume(self.pods[which], row))
        elif what == "forget" and self.placed:
            self.cluster.forget(self.placed.pop(which % len(self.placed)))
        elif what == "change node":
            self.put_node(row, which)
        elif what == "mend":
            self.kept.mend()


def read(kind: type[Any], item: Json) -> Any:
    return msgspec.convert(item, kind)


def answers(evaluation: Evaluation) -> Json:
    filters = {
        f.name: [f.plugin.reasons(state, code) if code != FITS else () for code in codes.tolist()]
        for f, state, codes in zip(
            evaluation.profile.filters, evaluation.filter_states, evaluation.codes, strict=True
        )
    }
    scores = {s.name: raw.tolist() for s, raw in zip(evaluation.profile.scores, evaluation.raw, strict=True)}
    return filters | scores | {"fits": evaluation.fits.tolist()}


@pytest.mark.parametrize("release", LEGACY)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pod=st.integers(0, len(PODS) - 1), history=st.lists(steps, max_size=20))
def test_mended_evaluation_equals_a_fresh_one(
    release: str, pod: int, history: list[tuple[str, int, int]]
) -> None:
    world = History(release, pod)
    for step in history:
        world.step(*step)
    world.kept.mend()
    assert answers(world.kept) == answers(Evaluation(world.profile, world.pod, world.cluster))


@pytest.mark.parametrize("release", LEGACY)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    pod=st.integers(0, len(PODS) - 1),
    history=st.lists(steps, max_size=8),
    row=st.integers(0, N_NODES - 1),
    times=st.integers(1, 3),
)
def test_what_is_said_of_batches_holds(
    release: str, pod: int, history: list[tuple[str, int, int]], row: int, times: int
) -> None:
    world = History(release, pod)
    for step in history:
        world.step(*step)
    world.kept.mend()
    placed = np.zeros(N_NODES, dtype=np.int64)
    placed[row] = times
    fits = predicted(world.kept, placed)
    scores = predicted_scores(world.kept, placed)
    for _ in range(times):
        world.cluster.assume(world.pod, row)
    after = Evaluation(world.profile, world.pod, world.cluster)
    for i, named in enumerate(world.profile.filters):
        if named.name in fits:
            assert (after.codes[i] == FITS).tolist() == fits[named.name], named.name
    for i, scored in enumerate(world.profile.scores):
        if scored.name in scores:
            assert after.raw[i].tolist() == scores[scored.name], scored.name


def predicted(kept: Evaluation, placed: IntColumn) -> dict[str, list[bool]]:
    """Where the pod would fit with so many more like it there, as far as the predicates can tell."""
    told: dict[str, list[bool]] = {}
    for f, state, codes in zip(kept.profile.filters, kept.filter_states, kept.codes, strict=True):
        kind = f.plugin.batch(state, kept.fits)
        if kind is BatchKind.CONSTANT:
            told[f.name] = (codes == FITS).tolist()
        elif kind is BatchKind.LOCAL:
            told[f.name] = (f.plugin.filter(state, ALL_ROWS, placed) == FITS).tolist()
    return told


def predicted_scores(kept: Evaluation, placed: IntColumn) -> dict[str, list[int]]:
    """The raw scores with so many more pods like it there, as far as the priorities can tell."""
    told: dict[str, list[int]] = {}
    for s, state, raw in zip(kept.profile.scores, kept.score_states, kept.raw, strict=True):
        kind = s.plugin.batch(state, kept.fits)
        if kind is BatchKind.CONSTANT:
            told[s.name] = raw.tolist()
        elif kind is BatchKind.LOCAL:
            told[s.name] = s.plugin.score(state, ALL_ROWS, placed).tolist()
    return told
