"""Quantities (``500m``, ``2Gi``): their text, and the integers a scheduler counts with.

Pure: knows nothing of pods, nodes or which resource a quantity measures.

The answers are those of ``resource.Quantity`` in k8s.io/apimachinery as it unmarshals JSON, oddities
included: a scheduler that reads a pod differently from the kubelet places it wrongly. Releases 1.13 and 1.36
answer alike on every text of the golden file. What the format's documentation does not prepare one for:

* A text needs no digits: ``"."``, ``"+"``, ``"k"`` and ``"Gi"`` are zero (but ``"Pi"`` and ``"Ei"`` refused).
* Spaces around the text are dropped, spaces within are refused.
* Only the binary suffixes are capped, at 2^63 - 1. ``"1e19"`` stays itself, and its value, not fitting, is 0.
* Nothing guards ``milli_value``: where the result passes int64 it is 0 or has wrapped round, case by case;
  ``"16Ei"`` is -1000.
* An inexact negative amount goes away from zero (``"-1.5"`` is -2) if upstream holds it in an int64. If it
  holds it as a big decimal (a fraction with a binary suffix, more than 18 digits, finer than nano), it is
  rounded towards zero and then one up: ``"-1.3Ki"``, -1331.2, is -1330; ``"-1e-10"`` is 1. It is cut to 64
  bits of nano, too: ``"-10.5Gi"`` is positive. Positive amounts simply go up.
* An exponent is cut to its low 32 bits: ``"1e4294967299"`` is 1000.
"""

import re
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import lru_cache
from typing import Final, NamedTuple

from berth.errors import BerthError

_FORM: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)")
_EXPONENT_FORM: Final = re.compile(r"[eE]([+-]?)0*([0-9]{1,19})")  # more digits pass int64
# What upstream trims and JSON lets stand unescaped: control characters arrive as escapes, which it refuses.
_SPACES: Final = " \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a" + (
    "\u2028\u2029\u202f\u205f\u3000"
)
_POWER_OF_TEN: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_POWER_OF_TWO: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

_NANO: Final = -9
_MILLI: Final = -3
_MAX_INT64: Final = 2**63 - 1
_INT64_DIGITS: Final = 18  # every number of so many decimal digits fits an int64
_ONE_STEP_SCALES: Final = (1, 2, 3, 6, 9)
_VAST_SCALE: Final = 64  # a multiple of 10^64 is one of 2^64: an int64 keeps nothing of it
_N_MEMOISED: Final = 8192
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


class QuantityError(BerthError, ValueError):
    """A text that Kubernetes would not take as a quantity.

    Attributes
    ----------
    text : str, int or float
        What was found.
    path : str
        Where, such as ``spec.containers[0].resources.requests.cpu``; may be empty.
    """

    def __init__(self, text: str | int | float, path: str = "") -> None:
        where = f"{path}: " if path else ""
        super().__init__(f"{where}{text!r} is not a quantity such as '500m' or '2Gi'")
        self.text = text
        self.path = path


class _Amount(NamedTuple):
    """``unscaled * 10**scale`` units; ``is_big`` if upstream holds it as a big decimal, not as an int64."""

    unscaled: int
    scale: int
    is_big: bool


def parse_quantity(text: str | int | float, path: str = "") -> Decimal:
    """Read a quantity exactly as Kubernetes holds it.

    Parameters
    ----------
    text : str, int or float
        As decoded from JSON. A float is read as its shortest text, since its literal is gone.
    path : str
        Where the text stands, for the error.

    Returns
    -------
    Decimal
        The amount Kubernetes holds: finer than nano, rounded away from zero; with a binary suffix, at most
        2^63 - 1. [cores, bytes or pieces] Comparing such decimals is exact; arithmetic, ``abs`` included,
        rounds to the context's digits.

    Raises
    ------
    QuantityError
        If Kubernetes would refuse the text.
    """
    amount = _parse(_literal(text))
    if amount is None:
        raise QuantityError(text, path)
    return Decimal(amount.unscaled).scaleb(amount.scale, _EXACT)


def value(text: str | int | float, path: str = "") -> int:
    """Return ``Quantity.Value()``: whole units, a positive fraction rounded up.

    In bytes, cores or pieces, as the resource is counted.

    Raises
    ------
    QuantityError
        If Kubernetes would refuse the text.
    """
    answer = _integers(text if type(text) is str else _literal(text))
    if answer is None:
        raise QuantityError(text, path)
    return answer[0]


def milli_value(text: str | int | float, path: str = "") -> int:
    """Return ``Quantity.MilliValue()``: thousandths, a positive rest rounded up.

    In milli-cores, or milli-units of another resource.

    Raises
    ------
    QuantityError
        If Kubernetes would refuse the text.
    """
    answer = _integers(text if type(text) is str else _literal(text))
    if answer is None:
        raise QuantityError(text, path)
    return answer[1]


@lru_cache(maxsize=_N_MEMOISED)
def nano_value(text: str | int | float) -> int:
    """Return the amount in thousand-millionths, which are exact: of these, sums can be made before they are rounded up.

    Raises
    ------
    QuantityError
        If Kubernetes would refuse the text.
    """
    amount = _parse(_literal(text))
    if amount is None:
        raise QuantityError(text)
    return 0 if amount.scale > _VAST_SCALE else amount.unscaled * int(10 ** (amount.scale - _NANO))


def value_of_nano(nano: int) -> int:
    """Return whole units, rounded up, cut to an int64."""
    return _wrapped(-(-nano // 10**9), 64)


def milli_value_of_nano(nano: int) -> int:
    """Return thousandths, rounded up, cut to an int64."""
    return _wrapped(-(-nano // 10**6), 64)


def format_quantity(value: int, milli: bool = False) -> str:
    """Write an integer as Kubernetes' canonical text.

    Parameters
    ----------
    value : int
        Whole units, such as bytes, or thousandths. [unit, or milli-unit if ``milli``]
    milli : bool
        Write thousandths with decimal suffixes (3900 is ``"3900m"``, 4000 is ``"4"``) instead of units with
        binary ones (2048 is ``"2Ki"``, 1500 is ``"1500"``). As upstream, units below 1024 take decimal suffixes:
        1000 is ``"1k"``.
    """
    if value == 0:
        return "0"
    if not milli and abs(value) >= 1024:
        return _with_suffix(value, 1024, ["", *_POWER_OF_TWO])
    suffixes = ["", "k", "M", "G", "T", "P", "E"]
    return _with_suffix(value, 1000, ["m", *suffixes] if milli else suffixes)


def _with_suffix(value: int, base: int, suffixes: list[str]) -> str:
    """Move as many factors of ``base`` as there are from the number into the suffix."""
    power = 0
    while value % base == 0 and power < len(suffixes) - 1:
        value //= base
        power += 1
    return f"{value}{suffixes[power]}"


def _literal(text: str | int | float) -> str:
    return text if isinstance(text, str) else repr(text)


@lru_cache(maxsize=_N_MEMOISED)
def _integers(text: str) -> tuple[int, int] | None:
    """``(value, milli_value)``, or None if refused. The same few texts come by the hundred thousand."""
    amount = _parse(text)
    if amount is None:
        return None
    scaled = _scaled_big if amount.is_big else _scaled_int64
    return scaled(amount, 0), scaled(amount, _MILLI)


def _parse(text: str) -> _Amount | None:
    text = text.strip(_SPACES)
    match = _FORM.fullmatch(text)
    if match is None or not text:
        return None
    sign_text, whole, fraction, suffix = match.groups(default="")
    sign = -1 if sign_text == "-" else 1
    power_of_two = _POWER_OF_TWO.get(suffix)
    if power_of_two is not None:
        return _parse_binary(sign, whole, fraction, power_of_two)
    power_of_ten = _power_of_ten(suffix)
    if power_of_ten is None:
        return None
    return _parse_decimal(sign, whole, fraction, power_of_ten)


def _power_of_ten(suffix: str) -> int | None:
    if suffix in _POWER_OF_TEN:
        return _POWER_OF_TEN[suffix]
    match = _EXPONENT_FORM.fullmatch(suffix)
    if match is None:
        return None
    exponent = int(match[1] + match[2])
    return _wrapped(exponent, 32) if _wrapped(exponent, 64) == exponent else None


def _parse_decimal(sign: int, whole: str, fraction: str, power_of_ten: int) -> _Amount | None:
    n_digits = len(_significant(whole)) + len(fraction)
    scale = _wrapped(power_of_ten - len(fraction), 32)
    if n_digits <= _INT64_DIGITS and scale >= _NANO:
        return _Amount(sign * _digits_to_int(whole + fraction), scale, is_big=False)
    if not whole and not fraction:
        return None
    return _rounded_to_nano(sign, _digits_to_int(whole + fraction), scale)


def _parse_binary(sign: int, whole: str, fraction: str, power_of_two: int) -> _Amount | None:
    # Upstream's estimate of the digits an int64 has left: 2^10 takes three, and so on.
    n_digits = len(_significant(whole)) + power_of_two * 3 // 10
    if not fraction and n_digits < 15:
        return _Amount(sign * _digits_to_int(whole) << power_of_two, 0, is_big=False)
    if not whole and not fraction:
        return None
    unscaled = _digits_to_int(whole + fraction) << power_of_two
    if unscaled > _MAX_INT64 * 10 ** len(fraction):
        return _Amount(sign * _MAX_INT64, 0, is_big=True)
    return _rounded_to_nano(sign, unscaled, -len(fraction))


def _significant(whole: str) -> str:
    return whole.lstrip("0") or "0"


def _digits_to_int(digits: str) -> int:
    # By way of Decimal, because int() refuses long texts with a ValueError of its own.
    return int(Decimal(digits or "0"))


def _rounded_to_nano(sign: int, unscaled: int, scale: int) -> _Amount:
    """Count in nano, rounded away from zero (who asks for some of a resource gets some), unless vast."""
    if unscaled == 0:
        return _Amount(0, _NANO, is_big=True)
    if scale < _NANO:
        return _Amount(sign * _ceil_shift(unscaled, _NANO - scale), _NANO, is_big=True)
    if scale > _VAST_SCALE:
        return _Amount(sign * unscaled, scale, is_big=True)
    return _Amount(sign * unscaled * 10 ** (scale - _NANO), _NANO, is_big=True)


def _ceil_shift(unscaled: int, n_places: int) -> int:
    """Return ``ceil(unscaled / 10**n_places)`` of a positive number, cheaply however many the places."""
    if n_places > unscaled.bit_length():
        return 1
    return -(-unscaled // 10**n_places)


def _scaled_int64(amount: _Amount, scale: int) -> int:
    """Count the amount in units of ``10**scale``, as int64 arithmetic gives it."""
    if amount.unscaled == 0:
        return 0
    if amount.scale < scale:
        magnitude = _ceil_shift(abs(amount.unscaled), scale - amount.scale)
        return magnitude if amount.unscaled > 0 else -magnitude
    n_places = _wrapped(amount.scale - scale, 32)
    if n_places <= 0:
        return amount.unscaled
    if n_places > _INT64_DIGITS + 1:
        return 0
    product = amount.unscaled * int(10**n_places)
    # Upstream multiplies by these at once and returns what is left on overflow; otherwise it stops at zero.
    if n_places in _ONE_STEP_SCALES or abs(product) <= _MAX_INT64:
        return _wrapped(product, 64)
    return 0


def _scaled_big(amount: _Amount, scale: int) -> int:
    """Count the amount in units of ``10**scale``, as upstream's big decimals give it."""
    if amount.scale == 0:  # capped
        return _wrapped(amount.unscaled * 10**-scale, 64)
    if amount.scale > _VAST_SCALE:
        return 0
    divisor = int(10 ** (scale - _NANO))
    if amount.unscaled >= 0:
        return _wrapped(-(-amount.unscaled // divisor), 64)
    # Upstream takes every negative number for a small one: it is cut to 64 bits, and an inexact quotient, by
    # then rounded towards zero, is "rounded up" by one more.
    kept = _wrapped(amount.unscaled, 64)
    quotient, rest = divmod(abs(kept), divisor)
    return (quotient if kept >= 0 else -quotient) + (1 if rest else 0)


def _wrapped(number: int, n_bits: int) -> int:
    """Cut ``number`` to what a signed integer of ``n_bits`` holds."""
    half = 1 << (n_bits - 1)
    return (number + half) % (1 << n_bits) - half
