import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.framework.plugin import BatchKind
from berth.plugins.node_load_forecast import NodeLoadForecast, load_forecast_score
from tests.builders import a_cluster, a_node, a_pod
from tests.plugins.asking import batch, scores


@pytest.mark.parametrize(
    ("delta", "adding", "removing"),
    [(0.0, 5, 5), (1.0, 0, 10), (-1.0, 10, 0), (0.1, 4, 5), (-0.1, 5, 4), (0.5, 2, 7), (1e-12, 4, 5)],
)
def test_a_load_about_to_fall_is_better_for_a_new_pod(delta: float, adding: int, removing: int) -> None:
    column = np.array([delta])
    assert load_forecast_score(column, 10).tolist() == [adding]
    assert load_forecast_score(column, 10, removing=True).tolist() == [removing]


@given(st.integers(-64, 64), st.sampled_from([10, 100]))
def test_equals_the_rule_in_exact_numbers(sixty_fourths: int, maximum: int) -> None:
    delta = Fraction(sixty_fourths, 64)  # exact as a float, too
    half = Fraction(maximum, 2)
    column = np.array([float(delta)])
    assert load_forecast_score(column, maximum).tolist() == [math.floor(half - half * delta)]
    assert load_forecast_score(column, maximum, removing=True).tolist() == [math.floor(half + half * delta)]


def test_scores_what_the_cluster_holds() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"), a_node("n3"))
    plugin = NodeLoadForecast(10)
    assert scores(plugin, cluster, a_pod()) == [5, 5, 5]
    cluster.set_load_delta(np.array([0.4, -0.4, 0.0]))
    assert scores(plugin, cluster, a_pod()) == [3, 7, 5]
    assert batch(plugin, cluster, a_pod()) is BatchKind.CONSTANT
