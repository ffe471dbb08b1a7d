"""Every key of every committed answer of the real kube-schedulers."""

import pytest
from conformance.compare import ORACLES, Comparison
from conformance.golden import read_golden

from berth.releases import RELEASES
from berth.sources.cases import answer_case

N_PARTS = 8


@pytest.mark.parametrize("part", range(N_PARTS))
@pytest.mark.parametrize("release", ORACLES)
def test_answers_equal_the_real_ones(release: str, part: int) -> None:
    comparison = Comparison()
    for number, (case, wanted) in enumerate(read_golden(release)):
        if number % N_PARTS == part:
            comparison.compare(answer_case(case, RELEASES[release]), wanted)
    assert not comparison.report()
    assert comparison.n["error"] >= 100


@pytest.mark.parametrize("release", ORACLES)
def test_there_are_a_thousand_cases_a_release(release: str) -> None:
    assert sum(1 for _ in read_golden(release)) >= 1000
