"""Rules of resources over all rows, in NumPy and as loops, against the plugins that they stand for."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.accounting import BASE_RESOURCES, CPU, EPHEMERAL_STORAGE, MEMORY
from berth.cluster.cluster import Cluster
from berth.framework.plugin import FITS, ScorePlugin
from berth.framework.rules import Rule, RuleKind, Term
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.plugins.node_resources_score import (
    BalancedAllocation,
    ResourcesScore,
    least_allocated,
    most_allocated,
)
from berth.plugins.resource_allocation import (
    ResourceAllocation,
    balanced_allocation,
    least_requested,
    most_requested,
)
from berth.scheduling import ruled
from berth.scheduling.amounts import MAX_EXACT, Amounts
from berth.scheduling.look_kernels import LOOK
from berth.scheduling.ruled import Scores, bind
from tests.builders import a_cluster, a_node, a_pod

GPU = "example.com/gpu"
AMONG = (CPU, MEMORY, EPHEMERAL_STORAGE, GPU)
PLUGINS: tuple[ScorePlugin[Any], ...] = (
    ResourcesScore(least_allocated, 100),
    ResourcesScore(least_allocated, 100, ((CPU, 3), (MEMORY, 1), (GPU, 5))),
    ResourcesScore(most_allocated, 100),
    ResourcesScore(most_allocated, 10, ((GPU, 1), (EPHEMERAL_STORAGE, 2))),
    BalancedAllocation(100),
    BalancedAllocation(100, ((CPU, 1), (EPHEMERAL_STORAGE, 1))),
    *(
        ResourceAllocation(kernel, maximum)
        for kernel in (least_requested, most_requested, balanced_allocation)
        for maximum in (10, 100)
    ),
)
amounts = st.one_of(st.integers(0, 12), st.integers(0, 1 << 20), st.integers(MAX_EXACT - 99, MAX_EXACT - 1))
rows = st.tuples(*(st.tuples(amounts, amounts) for _ in AMONG), st.tuples(amounts, amounts))
pods = st.fixed_dictionaries(
    {}, optional={CPU: st.integers(0, 40).map("{}m".format), MEMORY: st.integers(0, 40).map(str), GPU: st.just("2")}
)  # fmt: skip


def a_world(of_nodes: list[Any]) -> Cluster:
    """A cluster of which what is used and offered is given: of each resource, and of what the priorities count."""
    cluster = a_cluster(*(a_node(f"n{i}") for i in range(len(of_nodes))))
    for row, given_ in enumerate(of_nodes):
        change(cluster, row, given_)
    cluster.log.everything()
    return cluster


def change(cluster: Cluster, row: int, of_node: Any) -> None:
    for name, (used, offered) in zip(AMONG, of_node, strict=False):
        resource_id = cluster.resources.id(name)
        cluster.requested.of(resource_id)[row] = used
        cluster.nodes.allocatable.of(resource_id)[row] = offered
    cluster.nonzero_milli_cpu[row], cluster.nonzero_memory[row] = of_node[-1]
    cluster.log.node(row)


def ruled_scores(cluster: Cluster, requests: dict[str, str]) -> tuple[Scores, list[list[int]]]:
    """What rules say, by weights of their own, and what the plugins do."""
    pod = cluster.incoming(a_pod(requests=requests))
    found, truth = [], []
    for weight, plugin in enumerate(PLUGINS, -2):
        state = plugin.prepare(pod, cluster)
        rule = plugin.resource_rule(state)
        assert rule is not None
        bound = bind(rule, Amounts.of(cluster))
        assert bound is not None
        found.append((weight, bound))
        truth.append(plugin.score(state).tolist())
    return Scores(Amounts.of(cluster), found), truth


def check(scores: Scores, truth: list[list[int]]) -> None:
    assert scores.by_rule.tolist() == truth
    weighted = np.array(truth) * np.arange(-2, len(PLUGINS) - 2)[:, None]
    assert scores.total.tolist() == weighted.sum(axis=0).tolist()


@pytest.mark.parametrize("kernels", [None, LOOK.plain])
@given(of_nodes=st.lists(rows, min_size=1, max_size=5), requests=pods)
def test_scores_equal_the_plugins(kernels: Any, of_nodes: list[Any], requests: dict[str, str]) -> None:
    with LOOK.using(kernels):
        check(*ruled_scores(a_world(of_nodes), requests))


@given(of_nodes=st.lists(rows, min_size=2, max_size=5), requests=pods, row=st.integers(0, 1), to=rows)
def test_mended_scores_equal_fresh_ones(
    of_nodes: list[Any], requests: dict[str, str], row: int, to: Any
) -> None:
    cluster = a_world(of_nodes)
    scores, _ = ruled_scores(cluster, requests)
    change(cluster, row, to)
    scores.mend(Amounts.of(cluster), np.array([row], dtype=np.intp))
    fresh, truth = ruled_scores(cluster, requests)
    check(scores, truth)
    check(fresh, truth)


@pytest.mark.parametrize("kernels", [None, LOOK.plain])
@given(of_nodes=st.lists(rows, min_size=1, max_size=5), requests=pods, asked_only=st.booleans())
def test_what_fits_equals_the_plugin(
    kernels: Any, of_nodes: list[Any], requests: dict[str, str], asked_only: bool
) -> None:
    cluster = a_world(of_nodes)
    plugin = NodeResourcesFit(asked_only=asked_only)
    state = plugin.prepare(cluster.incoming(a_pod(requests=requests)), cluster)
    bound = bind(plugin.resource_rule(state), Amounts.of(cluster))
    assert bound is not None
    fits = np.ones(len(of_nodes), dtype=np.bool_)
    with LOOK.using(kernels):
        ruled.fit(Amounts.of(cluster), bound, fits)
    assert fits.tolist() == (plugin.filter(state) == FITS).tolist()


def test_many_rows_are_computed_block_by_block() -> None:
    rng = np.random.default_rng(7)
    n = 2 * ruled.BLOCK + 5
    cluster = a_cluster(a_node("n0"))
    for i in range(1, n):
        cluster.put_node(a_node(f"n{i}"))
    for name in AMONG:
        resource_id = cluster.resources.id(name)
        cluster.requested.of(resource_id)[:] = rng.integers(0, 50, n)
        cluster.nodes.allocatable.of(resource_id)[:] = rng.integers(0, 60, n)
    cluster.log.everything()
    check(*ruled_scores(cluster, {CPU: "3m", MEMORY: "5"}))


@pytest.mark.parametrize(("used", "offered"), [(MAX_EXACT, 1), (0, MAX_EXACT), (-1, 5), (0, -1)])
def test_amounts_for_which_floats_are_not_exact_bind_no_rule(used: int, offered: int) -> None:
    cluster = a_world([[(1, 2)] * 5, [(1, 2)] * 5])
    rule = Rule(RuleKind.FITS, (Term(BASE_RESOURCES.index(MEMORY), 1),))
    assert bind(rule, Amounts.of(cluster)) is not None
    cluster.requested.of(BASE_RESOURCES.index(MEMORY))[1] = used
    cluster.nodes.allocatable.of(BASE_RESOURCES.index(MEMORY))[1] = offered
    cluster.log.node(1)
    assert bind(rule, Amounts.of(cluster)) is None
    cluster.log.everything()
    assert bind(rule, Amounts.of(cluster)) is None


@pytest.mark.parametrize("term", [Term(0, MAX_EXACT), Term(0, -1), Term(0, 1, weight=1 << 40)])
def test_terms_for_which_floats_are_not_exact_bind_no_rule(term: Term) -> None:
    cluster = a_world([[(1, 2)] * 5])
    assert bind(Rule(RuleKind.LEAST_ALLOCATED, (term,), 100), Amounts.of(cluster)) is None
    assert bind(Rule(RuleKind.LEAST_ALLOCATED, (Term(0, 1),), 1_000), Amounts.of(cluster)) is None
