"""What is decided at a first look, and after mending, equals asking every plugin of every row."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import FITS, BatchKind
from berth.framework.prefilter import prefilter
from berth.framework.profile import Profile
from berth.objects.pods import Pod
from berth.releases import RELEASES
from berth.releases.profiles import provider_profile
from berth.releases.release import Options
from berth.scheduling.decide import decide
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.look_kernels import LOOK
from berth.scheduling.ties import TieBreaker
from tests.releases.test_mending import PODS, History, steps
from tests.scheduling.modern_worlds import MODERN, modern_clusters, modern_pods
from tests.scheduling.worlds import PROFILE, clusters, contents, pods

NAME = TieBreaker("name")


def ask_everybody(
    profile: Profile, pod: Incoming, cluster: Cluster
) -> tuple[list[bool], list[int], list[list[int]]]:
    """Return where the pod fits, and of these rows the weighted totals and each priority's scores."""
    states = [f.plugin.prepare(pod, cluster) for f in profile.filters]
    before = prefilter((f.name, f.plugin, state) for f, state in zip(profile.filters, states, strict=True))
    fits = before.asked(cluster.nodes).copy()
    if profile.drops is not None:
        fits &= profile.drops.filter(profile.drops.prepare(pod, cluster)) == FITS
    for f, state in zip(profile.filters, states, strict=True):
        fits &= f.plugin.filter(state) == FITS
    rows = np.flatnonzero(fits)
    total, columns = np.zeros(len(rows), dtype=np.int64), []
    for s in profile.scores:
        state = s.plugin.prepare(pod, cluster)
        column = s.plugin.normalize(state, s.plugin.score(state, rows), rows)
        total += s.weight * column
        columns.append(column.tolist())
    return fits.tolist(), total.tolist(), columns


def check(evaluation: Evaluation) -> None:
    """Check an evaluation, and that of which plugins hold that they skip the shape."""
    e = evaluation
    fits, total, columns = ask_everybody(e.profile, e.pod, e.cluster)
    decision = decide(e, NAME)
    assert e.fits.tolist() == fits
    if decision.row is not None:
        at = int(np.flatnonzero(fits).tolist().index(decision.row))
        assert decision.score == total[at] == max(total)
        assert decision.n_feasible == len(total)
        assert list(decision.scores.values()) == [column[at] for column in columns]
        assert e.weigh(np.flatnonzero(e.fits))[1].tolist() == total
    for i, f in enumerate(e.profile.filters):
        if f.plugin.skips(e.pod, e.cluster):
            state = f.plugin.prepare(e.pod, e.cluster)
            assert e.skipped_filters[i]
            assert not f.plugin.filter(state).any()
            assert (f.plugin.reject(state), f.plugin.restrict(state)) == (None, None)
            assert f.plugin.batch(state, e.fits) is BatchKind.CONSTANT
    for i, s in enumerate(e.profile.scores):
        if s.plugin.skips(e.pod, e.cluster):
            state, rows = s.plugin.prepare(e.pod, e.cluster), np.flatnonzero(e.fits)
            assert e.skipped_scores[i]
            assert (s.plugin.error(state), s.plugin.spread(state)) == (None, None)
            assert not s.plugin.normalize(state, s.plugin.score(state, rows), rows).any()
            assert s.plugin.batch(state, e.fits) is BatchKind.CONSTANT


def everything(evaluation: Evaluation) -> dict[str, object]:
    evaluation.mend()
    return contents(evaluation)


@pytest.mark.parametrize("kernels", [None, LOOK.plain])
@pytest.mark.parametrize("release", ["1.7", "1.10", "1.13", "1.17"])
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(pod=st.integers(0, len(PODS) - 1), history=st.lists(steps, max_size=12))
def test_in_old_releases(release: str, kernels: Any, pod: int, history: list[tuple[str, int, int]]) -> None:
    with LOOK.using(kernels):
        world = History(release, pod)
        world.profile = provider_profile(RELEASES[release], Options())
        world.kept = Evaluation(world.profile, world.pod, world.cluster)
        check(world.kept)
        for step in history:
            world.step(*step)
        check(world.kept)
        fresh = Evaluation(world.profile, world.pod, world.cluster)
        check(fresh)
        # Now that decisions were made, and before anything else was asked.
        assert everything(world.kept) == everything(fresh)


any_world = st.one_of(
    st.tuples(st.just(PROFILE), clusters(), pods),
    st.tuples(st.just(MODERN), modern_clusters(), st.one_of(modern_pods, pods)),
)


@pytest.mark.parametrize("kernels", [None, LOOK.plain])
@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(world=any_world, others=st.lists(st.tuples(pods, st.integers(0, 9)), max_size=4))
def test_by_the_module_and_in_1_36(
    kernels: Any, world: tuple[Profile, Cluster, Pod], others: list[tuple[Pod, int]]
) -> None:
    profile, cluster, pod = world
    with LOOK.using(kernels):
        kept = Evaluation(profile, cluster.incoming(pod), cluster)
        check(kept)
        alive = np.flatnonzero(cluster.nodes.alive).tolist()
        for other, number in others:
            cluster.assume(cluster.incoming(other), alive[number % len(alive)])
            check(kept)
        fresh = Evaluation(profile, kept.pod, cluster)
        assert everything(kept) == everything(fresh)


@pytest.mark.usefixtures("compiled_loops")
def test_compiled_loops_decide_alike() -> None:
    pytest.importorskip("numba")
    kernels = LOOK.load()
    for seed in range(3):
        decided = []
        for used in (None, kernels):
            world = History("1.13", seed)
            evaluation = Evaluation(MODERN, world.pod, world.cluster)
            with LOOK.using(used):
                decided.append((decide(evaluation, TieBreaker()), evaluation.fits.tolist()))
        assert decided[0] == decided[1]
