"""Every committed answer of the real DefaultPreemption."""

import collections

from conformance.preemption import answer_preemption, differences, kind_of, read_golden


def test_preempts_as_the_real_one_does() -> None:
    kinds: collections.Counter[str] = collections.Counter()
    for case, wanted in read_golden():
        got = answer_preemption(case)
        assert not differences(got, wanted), (got, wanted)
        kinds[kind_of(wanted)] += 1
    assert kinds["preempted"] >= 100
    assert kinds["not preempted"] >= 100


def test_the_cases_tell_victims_violations_ties_and_words_apart() -> None:
    answers = [wanted for _, wanted in read_golden()]
    candidates = [candidate for answer in answers for candidate in answer["candidates"].values()]
    assert sum(candidate["violations"] > 0 for candidate in candidates) >= 20
    assert sum(len(candidate["pods"]) > 2 for candidate in candidates) >= 60
    assert sum(len(answer["candidates"]) > 1 for answer in answers) >= 60
    assert sum(len(answer["best"]) > 1 for answer in answers) >= 5
    assert len({answer.get("message", "") for answer in answers}) >= 20
