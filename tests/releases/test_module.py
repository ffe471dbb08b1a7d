import pytest

from berth.config.priorities import ADD_PRIORITIES, OPTIONAL_ADD_PRIORITIES
from berth.errors import InputError
from berth.releases.module import addition_profile


def test_every_priority_that_the_settings_know_is_there() -> None:
    names = (*ADD_PRIORITIES, *OPTIONAL_ADD_PRIORITIES)
    assert [score.name for score in addition_profile(dict.fromkeys(names, 2)).scores] == list(names)


def test_an_unknown_priority_is_told_with_those_there_are() -> None:
    with pytest.raises(InputError, match="one of NodeLoadForecastPriority, SelectorSpreadPriority"):
        addition_profile({"NoSuchPriority": 1})
