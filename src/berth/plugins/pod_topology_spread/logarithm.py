"""The natural logarithm as Go computes it, which is not always the C library's to the last bit.

FreeBSD's ``e_log.c``, by the steps that it documents; Go's assembler for amd64 and its portable code agree.
"""

import math

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
ODD = (1.479819860511658591e-01, 1.818357216161805012e-01, 2.857142874366239149e-01, 6.666666666666735130e-01)
EVEN = (1.531383769920937332e-01, 2.222219843214978396e-01, 3.999999999940941908e-01)
HALF_ROOT_OF_TWO = 7.07106781186547524401e-01


def log(x: float) -> float:
    """Return the natural logarithm of a positive, finite number."""
    mantissa, exponent = math.frexp(x)
    if mantissa < HALF_ROOT_OF_TWO:
        mantissa, exponent = 2 * mantissa, exponent - 1
    f, k = mantissa - 1, float(exponent)
    s = f / (2 + f)
    s2 = s * s
    s4 = s2 * s2
    odd = even = 0.0
    for coefficient in ODD:
        odd = coefficient + s4 * odd
    for coefficient in EVEN:
        even = coefficient + s4 * even
    r = s2 * odd + s4 * even
    half_square = 0.5 * f * f
    return k * LN2_HIGH - ((half_square - (s * (half_square + r) + k * LN2_LOW)) - f)
