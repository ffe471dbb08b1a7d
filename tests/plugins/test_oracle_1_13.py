"""Against the answers of kube-scheduler 1.13's own code: reasons on every node, scores of the feasible ones."""

from tests.plugins.oracle_1_13 import PREDICATES, PRIORITIES, differences, golden


def test_plugins_answer_as_the_release_does() -> None:
    n_failing: dict[str, int] = dict.fromkeys(PREDICATES, 0)
    n_scored: dict[str, int] = dict.fromkeys(PRIORITIES, 0)
    for number, case in enumerate(golden()):
        answer = case.pop("answer")
        assert differences(case, answer) == [], number
        for name in PREDICATES:
            n_failing[name] += bool(answer["predicates"][name])
        for name in answer["priorities"]:
            n_scored[name] += len(set(answer["priorities"][name].values())) > 1
    # The cases show what they are to show: each predicate fails somewhere, each priority tells nodes apart.
    assert min(n_failing.values()) >= 10
    assert min(n_scored.values()) >= 10
