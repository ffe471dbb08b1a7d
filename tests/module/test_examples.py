import json
from typing import Any

import pytest

from berth.sources.answers import answer_line
from berth.sources.scenario import answer_scenario
from tests.module.examples import plans, scenario_lines

EXAMPLES = list(zip(scenario_lines(), plans(), strict=True))


@pytest.mark.parametrize(("line", "plan"), EXAMPLES, ids=[plan["id"] for _, plan in EXAMPLES])
def test_worked_scenario(line: bytes, plan: dict[str, Any]) -> None:
    assert json.loads(answer_line(line, answer_scenario)) == plan


def test_keys_stand_in_the_protocols_order() -> None:
    line, plan = EXAMPLES[0]
    decision = answer_scenario(line)["decisions"][0]
    assert list(decision) == [
        "operation", "namespace", "service", "node", "pod", "score", "scores", "feasible", "reason",
    ]  # fmt: skip
    assert set(decision) == set(plan["decisions"][0])


def test_a_scenario_may_ask_for_another_releases_arithmetic() -> None:
    line, plan = EXAMPLES[0]
    today = answer_scenario(json.dumps({**json.loads(line), "release": "1.36"}).encode())
    assert len(today["decisions"]) == len(plan["decisions"])
    scores = [score for decision in today["decisions"] for score in decision["scores"].values()]
    assert max(scores) > 10
    assert "error" in json.loads(
        answer_line(b'{"release": "1.30", "snapshot": {}, "requests": []}', answer_scenario)
    )
