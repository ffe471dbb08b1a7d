"""An evaluation that is mended through any history equals one made anew, for every plugin of the module's profile."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.cluster.cluster import Cluster
from berth.cluster.log import ChangeLog
from berth.framework.profile import Profile
from berth.objects.pods import Pod
from berth.scheduling.evaluation import Evaluation
from tests.builders import a_service
from tests.scheduling.modern_worlds import MODERN, modern_clusters, modern_nodes, modern_pods
from tests.scheduling.worlds import NODE_NAMES, PROFILE, clusters, contents, nodes, pods, renamed, some_zones

steps = st.one_of(
    st.tuples(st.just("assume"), pods, st.integers(0, 9)),
    st.tuples(st.just("assume its like"), st.none(), st.integers(0, 9)),
    st.tuples(st.just("put pod"), pods, st.integers(0, 9)),
    st.tuples(st.just("remove pod"), st.none(), st.integers(0, 99)),
    st.tuples(st.just("change node"), st.integers(0, 6).flatmap(lambda i: nodes(NODE_NAMES[i], some_zones)), st.just(0)),
    st.tuples(st.just("remove node"), st.none(), st.integers(0, 9)),
    st.tuples(st.just("forecast"), st.sampled_from([-1.0, 0.0, 0.4]), st.integers(0, 9)),
    st.tuples(st.just("service"), st.sampled_from(["web", "db"]), st.just(0)),
    st.tuples(st.just("mend"), st.none(), st.just(0)),
)  # fmt: skip


class History:
    """A cluster to which things happen, and the evaluation of one pod that is mended along."""

    def __init__(self, cluster: Cluster, pod: Pod, profile: Profile = PROFILE) -> None:
        self.profile = profile
        self.cluster = cluster
        self.pod = cluster.incoming(pod)
        self.kept = Evaluation(profile, self.pod, cluster)
        self.n_named = 0

    def _row(self, number: int) -> int | None:
        alive = np.flatnonzero(self.cluster.nodes.alive).tolist()
        return alive[number % len(alive)] if alive else None

    def step(self, what: str, thing: Any, number: int) -> None:
        cluster, row = self.cluster, self._row(number)
        match what:
            case "assume" if row is not None:
                cluster.assume(cluster.incoming(thing), row)
            case "assume its like" if row is not None:
                cluster.assume(self.pod, row)
            case "put pod":
                cluster.put_pod(renamed(thing, f"q{number}"))
            case "remove pod":
                alive = np.flatnonzero(cluster.pods.alive).tolist()
                if alive:
                    cluster.remove_pod(alive[number % len(alive)])
            case "change node":
                cluster.put_node(thing)
            case "remove node" if row is not None:
                cluster.remove_node(cluster.nodes.names[row])
            case "forecast" if row is not None:
                deltas = cluster.load_delta.copy()
                deltas[row] = thing
                cluster.set_load_delta(deltas)
            case "service":
                cluster.put(a_service(thing))
            case "mend":
                self.check()

    def check(self) -> None:
        self.kept.mend()
        assert self.kept.version == self.cluster.log.version
        fresh = Evaluation(self.profile, self.pod, self.cluster)
        assert contents(self.kept) == contents(fresh)
        check_idle(self.kept)
        check_idle(fresh)


def check_idle(evaluation: Evaluation) -> None:
    """What plugins say of which the evaluation holds that they have nothing to say."""
    e = evaluation
    feasible = np.flatnonzero(e.fits)
    for f, state, busy in zip(e.profile.filters, e.filter_states, e.busy_filters, strict=True):
        assert busy or not f.plugin.filter(state).any()
    for s, state, busy in zip(e.profile.scores, e.score_states, e.busy_scores, strict=True):
        if not busy:
            raw = s.plugin.score(state)
            assert not raw.any()
            assert not s.plugin.normalize(state, raw[feasible], feasible).any()


@settings(max_examples=120)
@given(cluster=clusters(), pod=pods, history=st.lists(steps, max_size=20))
def test_mended_equals_fresh(cluster: Cluster, pod: Pod, history: list[tuple[str, Any, int]]) -> None:
    world = History(cluster, pod)
    for what, thing, number in history:
        world.step(what, thing, number)
    world.check()


@settings(max_examples=40)
@given(cluster=clusters(), pod=pods, history=st.lists(steps, max_size=12))
def test_mended_equals_fresh_when_the_log_was_too_short(
    cluster: Cluster, pod: Pod, history: list[tuple[str, Any, int]]
) -> None:
    cluster.log = ChangeLog(length=3)
    test = History(cluster, pod)
    for what, thing, number in history:
        test.step(what, thing, number)
    test.check()


any_pods = st.one_of(modern_pods, pods)
modern_steps = st.one_of(
    st.tuples(st.just("assume"), any_pods, st.integers(0, 9)),
    st.tuples(st.just("assume its like"), st.none(), st.integers(0, 9)),
    st.tuples(st.just("put pod"), any_pods, st.integers(0, 9)),
    st.tuples(st.just("remove pod"), st.none(), st.integers(0, 99)),
    st.tuples(st.just("change node"), st.sampled_from(NODE_NAMES).flatmap(modern_nodes), st.just(0)),
    st.tuples(st.just("remove node"), st.none(), st.integers(0, 9)),
    st.tuples(st.just("service"), st.sampled_from(["web", "db"]), st.just(0)),
    st.tuples(st.just("mend"), st.none(), st.just(0)),
)


@settings(max_examples=100)
@given(cluster=modern_clusters(), pod=any_pods, history=st.lists(modern_steps, max_size=20))
def test_mended_equals_fresh_in_1_36(cluster: Cluster, pod: Pod, history: list[tuple[str, Any, int]]) -> None:
    world = History(cluster, pod, MODERN)
    for what, thing, number in history:
        world.step(what, thing, number)
    world.check()
