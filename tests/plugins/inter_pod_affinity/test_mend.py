"""A kept evaluation, mended through any history, equals a fresh one."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.cluster.cluster import Cluster
from berth.framework.plugin import FITS, BatchKind
from berth.framework.profile import NamedFilter, Profile, WeightedScore
from berth.objects.nodes import Node
from berth.scheduling.evaluation import Evaluation
from tests.plugins.inter_pod_affinity.worlds import (
    FILTERS,
    Json,
    a_node,
    a_pod,
    pod_of,
    preferred,
    priority_of,
    required,
)

KEYS = ("kubernetes.io/hostname", "zone", "absent", "")
APPS = ("web", "db")
NAMESPACES = ("default", "prod")
N_NODES = 4

selectors = st.one_of(
    st.builds(lambda app: {"matchLabels": {"app": app}}, st.sampled_from(APPS)),
    st.sampled_from(
        [
            None,
            {},
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "web"]}]},
        ]
    ),
)
bad_selectors = st.just({"matchExpressions": [{"key": "app", "operator": "In"}]})


def terms(selector: st.SearchStrategy[Json | None]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(
        {"labelSelector": selector, "topologyKey": st.sampled_from(KEYS)},
        optional={
            "namespaces": st.sampled_from([["prod"], ["default", "prod"]]),
            "namespaceSelector": st.sampled_from([{}, {"matchLabels": {"team": "a"}}]),
        },
    )


def sides(term: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.builds(
        lambda hard, soft: required(*hard) | preferred(*soft),
        st.lists(term, max_size=2),
        st.lists(st.tuples(st.integers(1, 100), term), max_size=2),
    )


def pods(selector: st.SearchStrategy[Json | None]) -> st.SearchStrategy[Json]:
    side = sides(terms(selector))
    affinity = st.fixed_dictionaries({}, optional={"podAffinity": side, "podAntiAffinity": side})
    return st.builds(
        lambda app, namespace, affinity: a_pod("", app, namespace=namespace, **affinity),
        st.sampled_from(APPS),
        st.sampled_from(NAMESPACES),
        affinity,
    )


# Terms that can't be read are rare, or nothing else would be seen.
any_pod = st.one_of(
    pods(selectors), pods(selectors), pods(selectors), pods(st.one_of(selectors, bad_selectors))
)
zones = st.sampled_from(["a", "b", None])
steps = st.one_of(
    st.tuples(st.just("assume"), any_pod, st.integers(0, N_NODES - 1)),
    st.tuples(st.just("more of the shape"), st.none(), st.integers(0, N_NODES - 1)),
    st.tuples(st.just("forget"), st.none(), st.integers(0, 20)),
    st.tuples(st.just("relabel"), zones, st.integers(0, N_NODES - 1)),
    st.tuples(st.just("mend"), st.none(), st.just(0)),
)


def profile(release: str) -> Profile:
    return Profile(
        filters=(NamedFilter("MatchInterPodAffinity", FILTERS[release]),),
        scores=(WeightedScore("InterPodAffinityPriority", priority_of(release), 1),),
    )


class History:
    """A cluster to which things happen, and the evaluation of one pod that is mended along."""

    def __init__(self, release: str, pod: Json) -> None:
        self.profile = profile(release)
        self.cluster = Cluster()
        for i in range(N_NODES):
            self.relabel(i, "ab"[i % 2])
        self.pod = self.cluster.incoming(pod_of(pod))
        self.kept = Evaluation(self.profile, self.pod, self.cluster)
        self.placed: list[int] = []

    def relabel(self, i: int, zone: str | None) -> None:
        node = a_node(f"n{i}", **({"zone": zone} if zone else {}))
        self.cluster.put_node(msgspec.convert(node, Node))

    def step(self, what: str, thing: Any, number: int) -> None:
        if what == "assume":
            self.placed.append(self.cluster.assume(self.cluster.incoming(pod_of(thing)), number))
        elif what == "more of the shape":
            self.placed.append(self.cluster.assume(self.pod, number))
        elif what == "forget" and self.placed:
            self.cluster.forget(self.placed.pop(number % len(self.placed)))
        elif what == "relabel":
            self.relabel(number, thing)
        elif what == "mend":
            self.check()

    def check(self) -> None:
        self.kept.mend()
        fresh = Evaluation(self.profile, self.pod, self.cluster)
        assert answers(self.kept) == answers(fresh)


def answers(evaluation: Evaluation) -> tuple[object, ...]:
    codes, raw = evaluation.codes[0].tolist(), evaluation.raw[0].tolist()
    error = evaluation.profile.scores[0].plugin.error(evaluation.score_states[0])
    reasons = [evaluation.reasons(0, code) if code else () for code in codes]
    return codes, reasons, raw, error, evaluation.fits.tolist()


@pytest.mark.parametrize("release", FILTERS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pod=any_pod, history=st.lists(steps, max_size=25))
def test_mended_evaluation_equals_a_fresh_one(
    release: str, pod: Json, history: list[tuple[str, Any, int]]
) -> None:
    world = History(release, pod)
    for what, thing, number in history:
        world.step(what, thing, number)
    world.check()


@pytest.mark.parametrize("release", FILTERS)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    pod=any_pod,
    others=st.lists(st.tuples(any_pod, st.integers(0, N_NODES - 1)), max_size=5),
    row=st.integers(0, N_NODES - 1),
)
def test_answers_stay_where_the_plugin_says_constant(
    release: str, pod: Json, others: list[tuple[Json, int]], row: int
) -> None:
    world = History(release, pod)
    for other, where in others:
        world.step("assume", other, where)
    world.kept.mend()
    codes, raw = world.kept.codes[0].copy(), world.kept.raw[0].copy()
    fits = bool(codes[row] == FITS)
    everywhere = np.ones(N_NODES, dtype=np.bool_)
    filters = world.profile.filters[0].plugin.batch(world.kept.filter_states[0], everywhere)
    scores = world.profile.scores[0].plugin.batch(world.kept.score_states[0], everywhere)
    world.step("more of the shape", None, row)
    fresh = Evaluation(world.profile, world.pod, world.cluster)
    # Pods of a batch go where they fit.
    if filters is BatchKind.CONSTANT and fits:
        assert fresh.codes[0].tolist() == codes.tolist()
    if scores is BatchKind.CONSTANT:
        assert fresh.raw[0].tolist() == raw.tolist()


def test_pod_without_terms_of_its_own_is_constant() -> None:
    world = History("1.13", a_pod("", "web"))
    everywhere = np.ones(N_NODES, dtype=np.bool_)
    assert FILTERS["1.13"].batch(world.kept.filter_states[0], everywhere) is BatchKind.CONSTANT
    assert priority_of("1.13").batch(world.kept.score_states[0], everywhere) is BatchKind.CONSTANT


def test_first_pod_at_all_brings_out_unreadable_terms() -> None:
    bad = {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In"}]}, "topologyKey": "zone"}
    world = History("1.13", a_pod("", "web", podAntiAffinity=required(bad)))
    assert world.kept.fits.all()
    world.step("assume", a_pod("", "db"), 0)
    world.check()
    assert not world.kept.fits.any()
