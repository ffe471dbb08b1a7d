import pytest

from tests.plugins.inter_pod_affinity.worlds import (
    FILTERS,
    Json,
    a_node,
    a_pod,
    predicate_answer,
    required,
    term,
    world_of,
)

NOT_MATCHED = "node(s) didn't match pod affinity/anti-affinity"
AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"

NODES = [a_node("a1", zone="a"), a_node("a2", zone="a"), a_node("b1", zone="b"), a_node("bare")]


def answer(release: str, pod: Json, *pods: Json, nodes: list[Json] = NODES) -> Json:
    return predicate_answer(FILTERS[release], world_of({"nodes": nodes, "pods": pods, "pod": pod}))


def failing(release: str, pod: Json, *pods: Json) -> list[str]:
    return sorted(answer(release, pod, *pods))


def test_pod_is_drawn_to_the_zone_of_its_company() -> None:
    pod = a_pod("x", "web", podAffinity=required(term("db")))
    assert answer("1.13", pod, a_pod("db", "db", "a1")) == {
        "b1": [NOT_MATCHED, AFFINITY],
        "bare": [NOT_MATCHED, AFFINITY],
    }
    assert answer("1.36", pod, a_pod("db", "db", "a1")) == {"b1": [AFFINITY], "bare": [AFFINITY]}


def test_pod_shuns_the_zone_of_another() -> None:
    pod = a_pod("x", "web", podAntiAffinity=required(term("db")))
    shunned = {"a1": [NOT_MATCHED, ANTI_AFFINITY], "a2": [NOT_MATCHED, ANTI_AFFINITY]}
    assert answer("1.13", pod, a_pod("db", "db", "a1")) == shunned


def test_pod_that_is_there_keeps_others_away() -> None:
    loner = a_pod("db", "db", "b1", podAntiAffinity=required(term("web")))
    assert answer("1.13", a_pod("x", "web"), loner) == {"b1": [NOT_MATCHED, EXISTING]}
    assert answer("1.13", a_pod("x", "api"), loner) == {}


def test_1_13_asks_existing_pods_first_and_1_36_last() -> None:
    pod = a_pod("x", "web", podAffinity=required(term("nobody")))
    loner = a_pod("db", "db", "b1", podAntiAffinity=required(term("web")))
    assert answer("1.13", pod, loner)["b1"] == [NOT_MATCHED, EXISTING]
    assert answer("1.36", pod, loner)["b1"] == [AFFINITY]


def test_first_pod_of_a_series_goes_anywhere() -> None:
    pod = a_pod("x", "web", podAffinity=required(term("web")))
    assert failing("1.13", pod) == []
    assert failing("1.36", pod) == ["bare"]
    assert failing("1.13", pod, a_pod("w", "web", "b1")) == ["a1", "a2", "bare"]


def test_others_of_the_series_outside_of_all_domains_do_not_count() -> None:
    pod = a_pod("x", "web", podAffinity=required(term("web")))
    assert failing("1.13", pod, a_pod("w", "web", "bare")) == []
    assert failing("1.10", pod, a_pod("w", "web", "bare")) == ["a1", "a2", "b1", "bare"]


@pytest.mark.parametrize(
    ("release", "expected"), [("1.10", ["b1", "bare"]), ("1.13", ["a1", "a2", "b1", "bare"])]
)
def test_one_pod_has_to_meet_all_terms_since_1_11(release: str, expected: list[str]) -> None:
    pod = a_pod("x", "web", podAffinity=required(term("db"), term("cache")))
    assert failing(release, pod, a_pod("d", "db", "a1"), a_pod("c", "cache", "a2")) == expected


def test_1_10_takes_existing_terms_at_the_key_of_the_last() -> None:
    loner = a_pod("d", "db", "a1", podAntiAffinity=required(term("web"), term("x", "kubernetes.io/hostname")))
    assert failing("1.10", a_pod("x", "web"), loner) == ["a1"]
    assert failing("1.13", a_pod("x", "web"), loner) == ["a1", "a2"]


def test_terms_speak_of_their_own_namespace_or_of_those_they_name() -> None:
    elsewhere = a_pod("d", "db", "a1", namespace="prod")
    assert failing("1.13", a_pod("x", "web", podAntiAffinity=required(term("db"))), elsewhere) == []
    named = a_pod("x", "web", podAntiAffinity=required(term("db", namespaces=["prod"])))
    assert failing("1.13", named, elsewhere) == ["a1", "a2"]
    loner = a_pod("d", "db", "a1", namespace="prod", podAntiAffinity=required(term("web")))
    assert failing("1.13", a_pod("x", "web"), loner) == []
    assert failing("1.13", a_pod("x", "web", namespace="prod"), loner) == ["a1", "a2"]


def test_finished_pods_and_pods_on_unknown_nodes_do_not_count() -> None:
    pod = a_pod("x", "web", podAntiAffinity=required(term("db", "kubernetes.io/hostname")))
    done = a_pod("d", "db", "a1") | {"status": {"phase": "Succeeded"}}
    assert failing("1.13", pod, done, a_pod("e", "db", "gone")) == []


def test_absent_selector_selects_nothing_and_an_empty_one_everything() -> None:
    nothing = {"topologyKey": "zone"}
    everything = {"topologyKey": "zone", "labelSelector": {}}
    db = a_pod("d", "db", "a1")
    assert failing("1.13", a_pod("x", "web", podAntiAffinity=required(nothing)), db) == []
    assert failing("1.13", a_pod("x", "web", podAffinity=required(nothing)), db) == ["a1", "a2", "b1", "bare"]
    assert failing("1.13", a_pod("x", "web", podAntiAffinity=required(everything)), db) == ["a1", "a2"]


def test_unreadable_selectors() -> None:
    bad = term("db") | {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In"}]}}
    db = a_pod("d", "db", "a1")
    drawn = a_pod("x", "web", podAffinity=required(bad))
    assert "because of PodAffinity" in answer("1.13", drawn, db)["error"]
    assert answer("1.13", drawn)["a1"] == [NOT_MATCHED, AFFINITY]
    shunning = a_pod("x", "web", podAntiAffinity=required(bad))
    assert answer("1.13", shunning, db)["b1"] == [NOT_MATCHED, ANTI_AFFINITY]
    assert answer("1.13", shunning) == {}
    loner = a_pod("d", "db", "a1", podAntiAffinity=required(bad))
    assert "default/x" in answer("1.13", a_pod("x", "web"), loner)["error"]
    assert answer("1.36", a_pod("x", "web"), loner) == {}
    assert answer("1.36", drawn, db)["a1"][0].startswith("parsing pod: requiredAffinityTerms: ")


def test_empty_topology_key() -> None:
    pod = a_pod("x", "web", podAffinity=required(term("db", "")))
    assert failing("1.13", pod, a_pod("d", "db", "a1")) == ["a1", "a2", "b1", "bare"]
    assert "empty topologyKey" in answer("1.10", pod)["error"]
    loner = a_pod("d", "db", "a1", podAntiAffinity=required(term("web", "")))
    assert answer("1.13", a_pod("x", "web"), loner) == {}
    assert "Empty topologyKey" in answer("1.10", a_pod("x", "web"), loner)["error"]


def test_namespace_selectors_count_today() -> None:
    namespaces = [{"metadata": {"name": "prod", "labels": {"team": "a"}}}, {"metadata": {"name": "default"}}]
    team = term("db", namespaceSelector={"matchLabels": {"team": "a"}})
    pods = [a_pod("d", "db", "a1", namespace="prod"), a_pod("e", "db", "b1")]
    case = {"nodes": NODES, "pods": pods, "namespaces": namespaces}
    shunning = a_pod("x", "web", podAntiAffinity=required(team))
    assert sorted(predicate_answer(FILTERS["1.36"], world_of(case | {"pod": shunning}))) == ["a1", "a2"]
    assert sorted(predicate_answer(FILTERS["1.13"], world_of(case | {"pod": shunning}))) == ["b1"]
