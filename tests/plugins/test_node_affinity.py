import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.framework.plugin import BatchKind
from berth.objects.base import LabelSelectorRequirement, SelectorOperator
from berth.objects.pods import NodeAffinity, NodeSelector, NodeSelectorTerm, PreferredSchedulingTerm
from berth.plugins.node_affinity import MatchNodeSelector, PreferMatchingNodes
from tests.builders import a_cluster, a_node, a_pod
from tests.plugins.asking import batch, fits, raw_scores, reasons, scores

FILTER, SCORE = MatchNodeSelector(), PreferMatchingNodes(10)
NODES = (
    a_node("n1", labels={"disk": "ssd", "rank": "7"}),
    a_node("n2", labels={"disk": "hdd", "rank": "x"}),
    a_node("n3"),
)


def expression(key: str, operator: SelectorOperator, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


def a_term(*expressions: LabelSelectorRequirement, names: tuple[str, ...] = ()) -> NodeSelectorTerm:
    fields = (expression("metadata.name", "In", *names),) if names else ()
    return NodeSelectorTerm(match_expressions=expressions, match_fields=fields)


def required(*terms: NodeSelectorTerm) -> NodeAffinity:
    return NodeAffinity(required=NodeSelector(node_selector_terms=terms))


def preferred(*terms: tuple[int, NodeSelectorTerm]) -> NodeAffinity:
    return NodeAffinity(
        preferred=tuple(PreferredSchedulingTerm(weight=weight, preference=term) for weight, term in terms)
    )


SSD, HDD = a_term(expression("disk", "In", "ssd")), a_term(expression("disk", "In", "hdd"))


@pytest.mark.parametrize(
    ("affinity", "fitting"),
    [
        (required(SSD), "100"),
        (required(SSD, HDD), "110"),
        (required(), "000"),
        (required(a_term()), "000"),
        (required(a_term(), SSD), "100"),
        (required(a_term(expression("disk", "NotIn", "ssd"))), "011"),
        (required(a_term(expression("disk", "Exists"))), "110"),
        (required(a_term(expression("disk", "DoesNotExist"))), "001"),
        (required(a_term(expression("rank", "Gt", "6"))), "100"),
        (required(a_term(expression("rank", "Lt", "7"))), "000"),
        (required(a_term(expression("disk", "Exists"), expression("rank", "Gt", "1"))), "100"),
        (required(a_term(names=("n3",))), "001"),
        (required(a_term(expression("disk", "Exists"), names=("n3",))), "000"),
        (required(a_term(expression("a b", "Exists")), HDD), "010"),  # a refused term matches nothing
        (NodeAffinity(), "111"),
        (None, "111"),
    ],
)
def test_required_terms(affinity: NodeAffinity | None, fitting: str) -> None:
    got = fits(FILTER, a_cluster(*NODES), a_pod(node_affinity=affinity))
    assert got == [digit == "1" for digit in fitting]


def test_the_node_selector_must_hold_as_well() -> None:
    pod = a_pod(node_selector={"disk": "ssd"}, node_affinity=required(a_term(expression("rank", "Exists"))))
    told = ("node(s) didn't match node selector",)
    assert reasons(FILTER, a_cluster(*NODES), pod) == [(), told, told]
    assert fits(FILTER, a_cluster(*NODES), a_pod(node_selector={"disk": "ssd", "rank": "8"})) == [False] * 3
    assert batch(FILTER, a_cluster(*NODES), pod) is BatchKind.CONSTANT


def test_weights_of_all_terms_that_hold_are_added_and_scaled() -> None:
    pod = a_pod(node_affinity=preferred((30, SSD), (10, a_term(expression("disk", "Exists"))), (0, HDD)))
    cluster = a_cluster(*NODES)
    assert raw_scores(SCORE, cluster, pod) == [40, 10, 0]
    assert scores(SCORE, cluster, pod) == [10, 2, 0]
    assert scores(SCORE, cluster, pod, "n2", "n3") == [10, 0]  # over the feasible nodes alone
    assert scores(SCORE, cluster, pod, "n3") == [0]
    assert batch(SCORE, cluster, pod) is BatchKind.CONSTANT


def test_fields_are_not_looked_at_and_an_empty_preference_matches_nothing() -> None:
    pod = a_pod(
        node_affinity=preferred((5, a_term(expression("disk", "Exists"), names=("n3",))), (7, a_term()))
    )
    assert raw_scores(SCORE, a_cluster(*NODES), pod) == [5, 5, 0]


def test_a_refused_preference_is_an_error_unless_it_weighs_nothing() -> None:
    broken = a_term(expression("a b", "Exists"))
    for weight, fails in ((1, True), (0, False)):
        cluster = a_cluster(*NODES)
        state = SCORE.prepare(cluster.incoming(a_pod(node_affinity=preferred((weight, broken)))), cluster)
        assert (SCORE.error(state) is not None) is fails


@given(
    st.lists(st.sampled_from(["ssd", "hdd", None]), min_size=1, max_size=6),
    st.integers(0, 100),
    st.integers(1, 100),
)
def test_scores_equal_the_scalar_rule(disks: list[str | None], ssd: int, hdd: int) -> None:
    cluster = a_cluster(
        *(a_node(f"n{i}", labels={"disk": disk} if disk else {}) for i, disk in enumerate(disks))
    )
    sums = [{"ssd": ssd, "hdd": hdd, None: 0}[disk] for disk in disks]
    wanted = [10 * each // max(sums) if max(sums) else 0 for each in sums]
    assert scores(SCORE, cluster, a_pod(node_affinity=preferred((ssd, SSD), (hdd, HDD)))) == wanted
