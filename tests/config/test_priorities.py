"""Weights by number."""

from berth.config.priorities import weights_of_groups


def test_a_number_weighs_all_priorities_that_share_it() -> None:
    add, remove = weights_of_groups({"1": 2, "4": 5, "5": 0})
    assert add == {
        "LeastRequestedPriority": 2,
        "BalancedResourceAllocation": 1,
        "SelectorSpreadPriority": 1,
        "NodeAffinityPriority": 5,
        "TaintTolerationPriority": 5,
        "InterPodAffinityPriority": 5,
        "NodeLoadForecastPriority": 0,
    }
    assert remove == {
        "MostRequestedPriority": 2,
        "BalancedResourceAllocation": 1,
        "ServicePodsOnNodePriority": 1,
        "NodeLoadForecastPriority": 0,
    }
