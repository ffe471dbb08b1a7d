import pytest

from berth.objects.nodes import Taint
from berth.objects.pods import Toleration
from berth.objects.taints import tolerated, tolerates

SPOT = Taint(key="spot", value="yes", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "stands"),
    [
        (Toleration(key="spot", operator="Equal", value="yes", effect="NoSchedule"), True),
        (Toleration(key="spot", value="yes"), True),  # Equal, any effect
        (Toleration(key="spot", value="no"), False),
        (Toleration(key="spot"), False),  # Equal to no value
        (Toleration(key="spot", operator="Exists"), True),
        (Toleration(key="spot", operator="Exists", value="no"), True),  # the value is not looked at
        (Toleration(key="spot", operator="Exists", effect="NoExecute"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoSchedule"), True),
        (Toleration(value="yes"), True),  # an empty key stands for all
        (Toleration(key="spot", operator="Gt", value="yes"), False),
    ],
)
def test_a_toleration_stands_a_taint(toleration: Toleration, stands: bool) -> None:
    assert tolerates(toleration, SPOT) is stands


def test_one_toleration_is_enough() -> None:
    other, spot = (Toleration(key=key, operator="Exists") for key in ("other", "spot"))
    assert tolerated((other, spot), SPOT)
    assert not tolerated((other,), SPOT)
    assert not tolerated((), SPOT)
