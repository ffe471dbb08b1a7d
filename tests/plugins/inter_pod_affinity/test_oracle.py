"""Against the answers of kube-scheduler's own code, release by release.

A line of the data is a case (of objects only what plugins read) with the answers: ``predicate``, the nodes
that fail and why, or an error; ``priority``, scores of the feasible nodes, or an error; ``error``, where the
release gave up after the predicate. An error's text is not compared: kube-scheduler's speaks of Go.
"""

import lzma
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from berth.plugins.inter_pod_affinity import matching
from tests.plugins.inter_pod_affinity.worlds import (
    FILTERS,
    Json,
    predicate_answer,
    priority_answer,
    priority_of,
    world_of,
)

DATA = Path(__file__).parents[1] / "data"


def cases(release: str) -> Iterator[Json]:
    with lzma.open(DATA / f"inter_pod_affinity_{release}.jsonl.xz") as lines:
        for line in lines:
            yield msgspec.json.decode(line)


@pytest.mark.parametrize("release", FILTERS)
def test_predicate_answers_as_the_release_does(release: str) -> None:
    for number, case in enumerate(cases(release)):
        got = predicate_answer(FILTERS[release], world_of(case))
        assert without_text(got) == without_text(case["predicate"]), number


@pytest.mark.parametrize("release", FILTERS)
def test_priority_answers_as_the_release_does(release: str) -> None:
    for number, case in enumerate(cases(release)):
        priority = priority_of(release, case.get("hardPodAffinityWeight", 1))
        if "priority" in case:
            feasible = [] if "error" in case["priority"] else sorted(case["priority"])
            got = priority_answer(priority, world_of(case), feasible)
            assert without_text(got) == without_text(case["priority"]), number
        elif "error" in case:
            assert "error" in priority_answer(priority, world_of(case), []), number


def test_many_pods_are_looked_up_by_column_with_the_same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "MANY_PODS", 1)
    test_predicate_answers_as_the_release_does("1.13")
    test_priority_answers_as_the_release_does("1.13")


def without_text(answer: Json) -> Json:
    return {"error": True} if "error" in answer else answer
