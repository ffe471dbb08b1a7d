"""Quantities against Kubernetes' own answers (see ``conformance/quantities``), and against a rule."""

import gzip
import json
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.errors import BerthError
from berth.objects.quantities import QuantityError, format_quantity, milli_value, parse_quantity, value

GOLDEN = Path(__file__).parent / "golden_quantities.jsonl.gz"


class Answer(NamedTuple):
    text: str | int | float
    ok: bool
    value: int
    milli_value: int
    canonical: str
    value_as_binary: str
    milli_value_as_decimal: str


def golden_answers() -> list[Answer]:
    with gzip.open(GOLDEN, "rt", encoding="utf-8", newline="\n") as lines:
        return [Answer(*json.loads(line).values()) for line in lines]


def ours(text: str | int | float) -> tuple[bool, int, int]:
    try:
        parse_quantity(text)
    except QuantityError:
        with pytest.raises(QuantityError):
            value(text)
        with pytest.raises(QuantityError):
            milli_value(text)
        return False, 0, 0
    return True, value(text), milli_value(text)


def test_answers_are_those_of_kubernetes() -> None:
    answers = golden_answers()
    assert len(answers) > 10_000
    wrong = [(a, got) for a in answers if (got := ours(a.text)) != (a.ok, a.value, a.milli_value)]
    assert wrong == []


def test_canonical_text_reads_as_the_same_amount() -> None:
    # Canonical texts are exact, so equality proves the exact amount, its rounding to nano and its cap.
    # Beyond exa no suffix is left, and upstream may drop the exponent: those texts say another amount.
    held = [a for a in golden_answers() if a.ok and parse_quantity(a.text).copy_abs() < Decimal("1e21")]
    wrong = [a for a in held if parse_quantity(a.canonical) != parse_quantity(a.text)]
    assert wrong == []


def test_integers_are_written_as_kubernetes_writes_them() -> None:
    accepted = [a for a in golden_answers() if a.ok]
    # -2^63 is left out: its negation overflows upstream, which then finds no factors in it.
    binary = [a for a in accepted if a.value != -(2**63)]
    assert [format_quantity(a.value) for a in binary] == [a.value_as_binary for a in binary]
    milli_texts = [format_quantity(a.milli_value, milli=True) for a in accepted]
    assert milli_texts == [a.milli_value_as_decimal for a in accepted]


FACTORS = {
    **{"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1)},
    **{"k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12)},
    **{"Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "e-2": Fraction(1, 100)},
}


@given(st.decimals(0, 10**6, places=5), st.sampled_from(sorted(FACTORS)))
def test_positive_amounts_round_up(number: Decimal, suffix: str) -> None:
    exact = Fraction(number) * FACTORS[suffix]
    held = Fraction(ceil(exact * 10**9), 10**9)
    text = f"{number:f}{suffix}"
    assert (Fraction(parse_quantity(text)), value(text), milli_value(text)) == (
        held,
        ceil(held),
        ceil(held * 1000) if held * 1000 < 2**63 else milli_value(text),
    )


@given(st.integers(1, 10**12), st.sampled_from(["n", "u", "m", ""]))
def test_negative_decimal_amounts_round_away_from_zero(number: int, suffix: str) -> None:
    exact = -number * FACTORS[suffix]
    text = f"-{number}{suffix}"
    assert (value(text), milli_value(text)) == (floor(exact), floor(exact * 1000))


@given(st.integers(0, 2**63 - 1))
def test_what_is_written_reads_back(number: int) -> None:
    assert value(format_quantity(number)) == number
    assert milli_value(format_quantity(number, milli=True)) == number


@given(st.text("0123456789.+-eEinumkKMGTP ", max_size=12) | st.text(max_size=8))
def test_any_text_is_answered_or_refused_alike(text: str) -> None:
    ours(text)


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("1 Gi", "spec.cpu", "spec.cpu: '1 Gi' is not a quantity such as '500m' or '2Gi'"),
        ("", "", "'' is not a quantity such as '500m' or '2Gi'"),
        (float("inf"), "x", "x: inf is not a quantity such as '500m' or '2Gi'"),
        (True, "x", "x: True is not a quantity such as '500m' or '2Gi'"),
    ],
)
def test_error_says_where_and_what(text: str | float, path: str, message: str) -> None:
    value(1)  # equal to True, which must not find its answer
    for read in (value, milli_value, parse_quantity):
        with pytest.raises(QuantityError) as caught:
            read(text, path)
        assert isinstance(caught.value, BerthError)
        assert (str(caught.value), caught.value.text, caught.value.path) == (message, text, path)


def test_vast_texts_are_read_at_once() -> None:
    # Upstream takes minutes or all memory for some of these; the answers are what its arithmetic comes to.
    assert value("1e-2147483640") == 1
    assert value("0e2147483647") == 0
    assert value("1234567890123456789e2147483647") == 0
    assert parse_quantity("1e2147483647") > parse_quantity("1e2147483646")
