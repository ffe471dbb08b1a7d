"""Print the texts the golden answers are made of: one JSON value per line, the same on every run.

    python texts.py | go run . | gzip -9n > ../../tests/objects/golden_quantities.jsonl.gz

With ``go run -modfile=release-1.13.mod .`` release 1.13 answers instead.
"""

# ruff: noqa: SIM905 - as lists these texts would fill two hundred lines

import json
import random

SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
EXPONENTS = """
    e0 e3 E3 e+3 e-3 E-6 e-9 e-10 e18 e19 e20 e07 e100 e-100
""".split()
WRONG_SUFFIXES = """
    K ki KI mi gi i B GB GiB Kii ee3 e e+ e- + -3 3Ki
""".split()
NUMBERS = [
    "",
    *"""
    0 1 5 7 9 10 15 100 250 500 999 1000 1001 1023 1024 1025 . .5 5. 0.5 1.5 1.3 10.5 0.1 0.25 0.001
    0.0001 1.000 1.0005 2.50 0.0000000001 0.000000001 1.0000000001 0.000000000000000000001 00 007 000.5
    00. .0 99999 100000 99999999 100000000 99999999999 100000000000 8191 8192 65536 9223372036
    9223372037 92233720368547758 9223372036854775 9223372036854776 999999999999999999
    1000000000000000000 9223372036854775807 9223372036854775808 9223372036854775806 18446744073709551616
    123456789012345678901234567890 0.999999999999999999 1.23456789012345678 12345678901.23456789
    0000000000000000000001 1.50000000000000000000
""".split(),
]
ODD = """
    1.5.2 1..5 0x10 1_000 1,000 Inf inf +Inf NaN nan null true --1 +-1 1- - + 1e3.5 1e3m 1me3 1Ee3 1eE
    1E3k m1 Gi1 e3 E3 1+1 1m-3 1Ki1 1e9223372036854775807 1e9223372036854775808 1e-9223372036854775808
    1e99999999999999999999 1e4294967299 1e4294967296 -1e8589934594 1e2147483647 1.5e2147483647
    12e2147483646 1.5e-2147483648 1.25e-2147483648 1e-4294967295 1e00000000000000000000000000003 0e1000
    1e1000 -1e1000 12345678901234567890e50 12345678901234567890e64 12345678901234567890e80
    -12345678901234567890e50 -12345678901234567890e64 -12345678901234567890e70 1e-1000 -1e-1000
""".split()
SPACED = [
    "1 Gi",
    " 1",
    "1 ",
    " 1Gi ",
    "\t1",
    "1\n",
    "\u00a01",
    "1\u2003",
    "\u30001",
    "\u20281",
    "\u00851",
    "\x1c1",
    " ",
]
FOREIGN = ["\uff11", "1\u0660", "½", "∞", "\u22121", "1µ", "1\ufeff", "\u200b1", "1\x00", "1\\", '1"', "é"]
LONG = ["9" * 5000, "-" + "9" * 5000 + "Ki", "0." + "0" * 5000 + "1", "1" + "0" * 4500 + "m"]
JSON_NUMBERS = """
    0 -0 1 -1 1.5 -1.5 1.0 0.1 1e3 1E3 1e-7 1.5e9 1e19 1e22 -1e19 2.5e-10 9223372036854775807
    -9223372036854775808 18446744073709551615 1000000000000000000000 1e300 0.30000000000000004 1e16
    12345678901234567 1.7976931348623157e308 5e-324 true false
""".split()


def random_number(rng: random.Random) -> str:
    """Draw digits of random length, half of the time with a fraction."""
    n_digits = rng.choice([0, 1, 1, 2, 3, 4, 6, 9, 12, 15, 17, 18, 19, 20, 25])
    whole = "".join(rng.choices("0123456789", k=n_digits))
    if rng.random() < 0.5:
        return whole
    return f"{whole}." + "".join(rng.choices("0123456789", k=rng.choice([0, 1, 2, 3, 6, 9, 10, 15, 18, 22])))


def random_suffix(rng: random.Random) -> str:
    """Draw a right suffix mostly, or an exponent."""
    if rng.random() < 0.7:
        return rng.choice(SUFFIXES)
    return f"{rng.choice('eE')}{rng.choice(['', '+', '-'])}{rng.randrange(30)}"


def texts() -> list[str]:
    """Return every text, as JSON."""
    rng = random.Random(1)
    found = [sign + number + suffix for sign in ("", "-") for number in NUMBERS for suffix in SUFFIXES]
    found += [sign + number + suffix for sign in ("", "-") for number in NUMBERS for suffix in EXPONENTS]
    found += [f"+{number}" for number in NUMBERS]
    found += [number + suffix for number in ("", "1", "1.5") for suffix in WRONG_SUFFIXES]
    found += ODD + SPACED + FOREIGN + LONG
    found += [rng.choice(["", "", "-", "+"]) + random_number(rng) + random_suffix(rng) for _ in range(4000)]
    found += ["".join(rng.choices("0123456789.+-eEinumkKMGTP ", k=rng.randrange(1, 7))) for _ in range(2500)]
    # Shortest around the point where an int64 ends.
    for suffix in SUFFIXES:
        for _ in range(20):
            found.append(f"{rng.choice(['', '-'])}{rng.randrange(10 ** rng.randrange(1, 20))}{suffix}")
    return [json.dumps(text, ensure_ascii=False) for text in dict.fromkeys(found)] + JSON_NUMBERS


if __name__ == "__main__":
    print("\n".join(texts()))
