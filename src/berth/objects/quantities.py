"""Kubernetes quantities as exact integers. A stand-in: the full reader takes this file's place."""

import re
from fractions import Fraction

from berth.errors import BerthError

_FORM = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,3})|(n|u|m|k|[KMGTPE]i|[MGTPE]|))", re.ASCII
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class QuantityError(BerthError, ValueError):
    """A text that is no quantity."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is not a quantity such as '500m' or '2Gi'")


def value(text: str) -> int:
    """Whole units, rounded away from zero."""
    return _rounded_up(_exact(text))


def milli_value(text: str) -> int:
    """Thousandths, rounded away from zero."""
    return _rounded_up(_exact(text) * 1000)


def _exact(text: str) -> Fraction:
    match = _FORM.fullmatch(text)
    if match is None:
        raise QuantityError(text)
    number, exponent, suffix = match.groups()
    if exponent is not None:
        return Fraction(f"{number}e{exponent}")
    if suffix in _BINARY:
        return Fraction(number) * (1 << _BINARY[suffix])
    return Fraction(f"{number}e{_DECIMAL[suffix]}")


def _rounded_up(amount: Fraction) -> int:
    size = -(-abs(amount).numerator // amount.denominator)
    return size if amount >= 0 else -size
