from hypothesis import given
from hypothesis import strategies as st

from berth.objects.taints import tolerated
from berth.plugins.taint_toleration import PreferToleratedTaints, TolerateTaints
from tests.builders import a_cluster, a_node, a_pod, a_taint, a_toleration
from tests.plugins.asking import fits, raw_scores, reasons, scores

FILTER, SCORE = TolerateTaints(), PreferToleratedTaints(10)
TEXTS = (
    "spot:NoSchedule",
    "spot=yes:NoSchedule",
    "bad:NoExecute",
    "old:PreferNoSchedule",
    "slow=1:PreferNoSchedule",
)


def test_taints_that_keep_pods_away() -> None:
    cluster = a_cluster(a_node("n0"), *(a_node(text, taints=[text]) for text in TEXTS))
    told = ("node(s) had taints that the pod didn't tolerate",)
    assert reasons(FILTER, cluster, a_pod()) == [(), told, told, told, (), ()]
    assert fits(FILTER, cluster, a_pod(tolerations=["spot:NoSchedule"])) == [
        True,
        True,
        True,
        False,
        True,
        True,
    ]
    assert fits(FILTER, cluster, a_pod(tolerations=["spot=yes:NoSchedule"]))[1:3] == [False, True]


def test_every_taint_must_be_tolerated() -> None:
    cluster = a_cluster(a_node("n1", taints=["spot:NoSchedule", "bad:NoExecute"]))
    assert fits(FILTER, cluster, a_pod(tolerations=["spot:NoSchedule"])) == [False]
    assert fits(FILTER, cluster, a_pod(tolerations=["spot:NoSchedule", "bad:NoExecute"])) == [True]


def test_one_effect_alone_may_be_asked_for() -> None:
    cluster = a_cluster(a_node("n1", taints=["spot:NoSchedule"]), a_node("n2", taints=["bad:NoExecute"]))
    assert fits(TolerateTaints(effects=("NoExecute",)), cluster, a_pod()) == [True, False]


def test_the_fewer_taints_the_pod_does_not_stand_the_better() -> None:
    old, slow = "old:PreferNoSchedule", "slow:PreferNoSchedule"
    cluster = a_cluster(
        a_node("n1", taints=[old, slow, "x:PreferNoSchedule"]),
        a_node("n2", taints=[old, "spot:NoSchedule"]),
        a_node("n3"),
    )
    assert raw_scores(SCORE, cluster, a_pod()) == [3, 1, 0]
    assert scores(SCORE, cluster, a_pod()) == [0, 7, 10]
    assert scores(SCORE, cluster, a_pod(), "n2", "n3") == [0, 10]
    assert scores(SCORE, cluster, a_pod(), "n3") == [10]
    assert scores(SCORE, cluster, a_pod(tolerations=[old, slow])) == [0, 10, 10]


def test_what_is_known_of_pods_that_tolerate_alike_is_of_a_few_kinds_and_of_the_nodes_as_they_are() -> None:
    cluster = a_cluster(*(a_node(f"n{i}", taints=[f"t{i}:NoSchedule"]) for i in range(40)))
    tolerant = [a_pod(tolerations=[f"t{i}:NoSchedule"]) for i in range(40)]
    for i, pod in enumerate(tolerant):
        assert fits(FILTER, cluster, pod) == [row == i for row in range(40)]
    assert fits(FILTER, cluster, tolerant[0]) == [row == 0 for row in range(40)]
    cluster.put_node(a_node("n0", taints=["t1:NoSchedule"]))
    cluster.put_node(a_node("n40"))
    assert fits(FILTER, cluster, tolerant[0]) == [row == 40 for row in range(41)]
    cluster.remove_node("n40")
    cluster.put_node(a_node("n41", taints=["t0:NoSchedule"]))
    assert fits(FILTER, cluster, tolerant[0]) == [row == 40 for row in range(41)]
    assert fits(FILTER, cluster, tolerant[1]) == [row < 2 for row in range(41)]


@given(
    st.lists(st.lists(st.sampled_from(TEXTS), max_size=4, unique=True), min_size=1, max_size=5),
    st.lists(st.sampled_from(TEXTS), max_size=3),
)
def test_equals_the_scalar_rule(nodes: list[list[str]], tolerations: list[str]) -> None:
    stands = tuple(map(a_toleration, tolerations))

    def untolerated(taints: list[str], *effects: str) -> int:
        return sum(t.effect in effects and not tolerated(stands, t) for t in map(a_taint, taints))

    cluster = a_cluster(*(a_node(f"n{i}", taints=taints) for i, taints in enumerate(nodes)))
    pod = a_pod(tolerations=tolerations)
    assert fits(FILTER, cluster, pod) == [not untolerated(each, "NoSchedule", "NoExecute") for each in nodes]
    counts = [untolerated(each, "PreferNoSchedule") for each in nodes]
    highest = max(counts)
    assert scores(SCORE, cluster, pod) == [10 - 10 * n // highest if highest else 10 for n in counts]
