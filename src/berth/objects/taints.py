"""When a toleration stands a taint (``Toleration.ToleratesTaint``, alike from 1.7 to 1.36 but for alpha operators)."""

import re
from collections.abc import Iterable

from berth.objects.nodes import Taint
from berth.objects.pods import Toleration

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")


def tolerates(toleration: Toleration, taint: Taint, *, compares: bool = False) -> bool:
    """Tell whether one toleration stands one taint.

    Parameters
    ----------
    compares : bool
        Whether the operators Lt and Gt are known (1.36, gate TaintTolerationComparisonOperators).
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    if compares and toleration.operator in ("Lt", "Gt"):
        return _compares(toleration, taint)
    return toleration.operator == "Exists"


def tolerated(tolerations: Iterable[Toleration], taint: Taint, *, compares: bool = False) -> bool:
    """Tell whether any toleration stands the taint; ``compares`` as above."""
    return any(tolerates(toleration, taint, compares=compares) for toleration in tolerations)


def _compares(toleration: Toleration, taint: Taint) -> bool:
    """Tell whether the taint's value is less, or greater, than the toleration's; both must be an int64 as Go writes it."""
    bound, value = (
        int(text) if _INTEGER.fullmatch(text) and len(text) <= 20 else 1 << 63
        for text in (toleration.value, taint.value)
    )
    if not all(-(1 << 63) <= number < 1 << 63 for number in (bound, value)):
        return False
    return value < bound if toleration.operator == "Lt" else value > bound
