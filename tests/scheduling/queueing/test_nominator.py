from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster, Incoming
from berth.scheduling.queueing import Nominator
from tests.scheduling.queueing.worlds import waiting

CLUSTER = Cluster()
LOW, MIDDLE, HIGH = (waiting(CLUSTER, name, priority) for name, priority in [("l", 1), ("m", 2), ("h", 3)])
ROWS = {"n0": 0, "n1": 1}


def beside(nominator: Nominator, pod: Incoming) -> dict[int, list[str]]:
    found = nominator.beside(pod, lambda name: ROWS.get(name, NONE))
    return {row: [other.name for other in pods] for row, pods in found.items()}


def test_pods_of_equal_or_higher_priority_count_and_never_the_pod_itself() -> None:
    nominator = Nominator()
    for pod, node in [(LOW, "n0"), (HIGH, "n0"), (MIDDLE, "n1"), (waiting(CLUSTER, "x", 9), "gone")]:
        nominator.put(pod, node)
    assert beside(nominator, waiting(CLUSTER, "new", 2)) == {0: ["h"], 1: ["m"]}
    assert beside(nominator, waiting(CLUSTER, "new", -5)) == {0: ["l", "h"], 1: ["m"]}
    assert beside(nominator, MIDDLE) == {0: ["h"]}
    assert beside(nominator, waiting(CLUSTER, "new", 10)) == {}
    assert [each.pod.name for each in nominator.on_node("n0")] == ["l", "h"]


def test_a_pod_is_nominated_for_one_node() -> None:
    nominator = Nominator()
    nominator.put(LOW, "n0")
    nominator.put(LOW, "n1")
    assert (nominator.on_node("n0"), nominator.node_of(LOW.uid), len(nominator)) == ((), "n1", 1)
    nominator.put(LOW, "")
    nominator.remove(LOW.uid)
    assert (nominator.on_node("n1"), nominator.node_of(LOW.uid), len(nominator)) == ((), "", 0)


def test_an_update_that_knows_of_no_node_yet_keeps_the_nomination() -> None:
    nominator = Nominator()
    nominator.put(LOW, "n0")
    newer = waiting(CLUSTER, "l", 7)
    nominator.update(newer, "", "")
    assert nominator.on_node("n0")[0].priority == 7
    nominator.update(newer, "", "n1")
    assert nominator.node_of(LOW.uid) == "n1"
    nominator.update(newer, "n1", "")
    assert nominator.node_of(LOW.uid) == ""
    nominator.update(newer, "", "")
    assert nominator.node_of(LOW.uid) == ""
